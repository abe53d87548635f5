"""The harness's side of a remote helper: typed calls, each with a named deadline."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from chaos.base.clock import Clock
from chaos.history.host_clock import Offset, measure_offset
from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import FoundProcess
from chaos.machine.job.protocol import HelperLost, LaunchSpec, PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import NoSuchProcess, ProcessIdentity, State, WrongProcess
from chaos.machine.linux.procfs import Signals
from chaos.machine.remote import replies
from chaos.machine.remote.network_calls import NetworkCalls
from chaos.machine.remote.package_calls import PackageCalls
from chaos.machine.remote.replies import Errors, fields, list_of, optional, text, whole, yes
from chaos.machine.remote.tool_calls import ToolCalls
from chaos.machine.remote.transport import Transport
from chaos.machine.remote.wire import PROTOCOL, NotTheProtocol, Writer, messages

_log = logging.getLogger(__name__)

HELLO_SECONDS = 30.0
CALL_SECONDS = 30.0
_ENDED = (NoSuchProcess, WrongProcess)
"""Errors of a remote helper that callers distinguish, where a process is sent a signal."""

_SAID = 2000
"""Characters of a remote helper's words that are repeated."""

_Mailbox = queue.SimpleQueue[dict[str, Any] | None]
"""For one message; None says that the remote helper was lost."""


@dataclass(frozen=True)
class Introduction:
    """The introduction of a remote helper: ``pid``, ``uid``, ``host`` and ``boot`` are those of its node.

    ``network`` distinguishes its network from others of the same boot; empty where the helper does not say.
    """

    pid: int
    uid: int
    host: str
    boot: str
    python: str
    network: str = ""


class Visitors(Protocol):
    """Receives the agents that call a remote helper's socket (:class:`chaos.run.launch.channel.Channel`)."""

    def visit(self, helper: HelperClient, caller: int, pid: int, uid: int) -> Visit:
        """Accept a caller. ``pid`` and ``uid`` are the word of that node's kernel."""


class Visit(Protocol):
    """One caller."""

    def hear(self, line: bytes) -> bool:
        """Take a line of the caller; return False when nothing more of it is heard."""

    def end(self) -> None:
        """Note that the caller has gone."""


class HelperClient(NetworkCalls, PackageCalls, ToolCalls):
    """A remote helper at the other end of ``transport``. Its methods may be called from several threads.

    Every method raises HelperLost when the remote helper has ended, does not answer in time, or breaks the protocol,
    and PlatformError for a request that it refuses, or answers in an unexpected shape. Other errors come only from the
    methods that name them.
    """

    def __init__(self, transport: Transport, node: int, run: str, visitors: Visitors | None = None) -> None:
        """Wait for its hello, and send it the run. Raises HelperLost, with ``transport`` closed."""
        self.node = node
        self._transport = transport
        self._writer = Writer(transport.write)
        self._visitors = visitors
        self._visits: dict[int, Visit] = {}
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Mailbox] = {}
        self._hello: _Mailbox = queue.SimpleQueue()
        self._greeted = False
        self._begun = False
        self._lock = threading.Lock()
        self._closing = False
        self.lost: str | None = None
        self._reader = threading.Thread(target=self._read, name=f"helper-{node}", daemon=True)
        self._reader.start()
        try:
            self.introduction = self._introduced()
            self._begun = True
            self._call("begin", run=run)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"remote helper on node {self.node}"

    # The run's places on the node.

    def place(self, path: str, files: Mapping[str, str]) -> None:
        """Make a private directory with these files there, or replace files in a directory that this run has made."""
        self._call("place", path=path, files=dict(files))

    def remove(self, path: str) -> bool:
        """Remove a private directory that this run has made there; return False when there is none."""
        return self._ask(yes, "remove", path=path)

    def open_roots(self, paths: Sequence[str]) -> None:
        """Allow files below these directories to be listed and read."""
        self._call("open_roots", paths=list(paths))

    def files(self, path: str) -> dict[str, tuple[int, int]]:
        """Return the plain files below a directory, each with its size (bytes) and time of change (ns)."""
        return dict(self._ask(list_of(replies.file), "files", path=path))

    def read(self, path: str, offset: int = 0, size: int = 1 << 20) -> bytes:
        """Return a piece of a file, of at most 1 MiB; empty at its end."""
        return self._ask(replies.piece, "read", path=path, offset=offset, size=size)

    # Agents.

    def listen(self, path: str) -> None:
        """Let the remote helper listen for that node's agents on a Unix socket in a private directory of the run."""
        self._call("listen", path=path)

    def answer(self, caller: int, line: str) -> None:
        """Answer an agent; does nothing when the remote helper has gone."""
        self._post("answer", caller=caller, line=line)

    def hang_up(self, caller: int) -> None:
        """End an agent's connection; does nothing when the remote helper has gone."""
        self._post("hang_up", caller=caller)

    # Jobs.

    def start(self, spec: LaunchSpec) -> ProcessIdentity:
        """Start the node's launcher."""
        return self._ask(
            self._identity,
            "start",
            attempt=spec.attempt,
            argv=list(spec.argv),
            environment=dict(spec.environment),
            before=dict(spec.before),
            cwd=str(spec.cwd),
            log=str(spec.log),
            cores=None if spec.cores is None else list(spec.cores),
        )

    def processes(self, attempt: str) -> list[FoundProcess]:
        """Return the living processes of an attempt on that node."""
        return self._ask(list_of(self._found_process), "processes", attempt=attempt)

    def state(self, identity: ProcessIdentity) -> State:
        """Return whether a process runs, is stopped, is a zombie, or is gone."""
        return self._ask(replies.state, "state", identity=asdict(identity))

    def exit_status(self, attempt: str, identity: ProcessIdentity) -> ExitStatus | None:
        """Return how a process of an attempt ended; None while it runs."""
        return self._ask(replies.exit_statuses, "exit_statuses", attempt=attempt, identities=[asdict(identity)])

    def signal(self, attempt: str, identity: ProcessIdentity, signum: int) -> None:
        """Send a signal to a process of an attempt. Raises NoSuchProcess and WrongProcess, too."""
        self._call("signal", raises=_ENDED, attempt=attempt, identity=asdict(identity), signum=int(signum))

    def signals(self, identity: ProcessIdentity) -> Signals | None:
        """Return a process's handling of signals, and the signals that it has not taken yet; None when it has ended."""
        return self._ask(optional(replies.signals), "signals", identity=asdict(identity))

    def stop(self, attempt: str, grace_seconds: float) -> Ended:
        """End all processes of an attempt."""
        seconds = grace_seconds + CALL_SECONDS
        return self._ask(self._ended, "stop", seconds=seconds, attempt=attempt, grace_seconds=grace_seconds)

    # Restoring.

    def find(self) -> list[FoundProcess]:
        """Return every living process of the run on that node."""
        return self._ask(list_of(self._found_process), "find")

    def resume(self, identity: ProcessIdentity) -> None:
        """Continue a stopped process of the run. Raises NoSuchProcess and WrongProcess, too."""
        self._call("resume", raises=_ENDED, identity=asdict(identity))

    def end_run(self) -> Ended:
        """End every process of the run on that node with SIGKILL."""
        return self._ask(self._ended, "end_run")

    def leftovers(self, directories: Sequence[str]) -> dict[str, list[str]]:
        """Return the run's leftovers on that node, in words.

        They are ``processes``, and ``mounts`` below these directories that were not there when the remote helper began.
        """
        return self._ask(replies.left_over, "leftovers", directories=list(directories))

    def standing(self, place: str) -> list[str]:
        """Return processes that work below a directory there, or write to a file of it, whatever they carry.

        Each is described in words.
        """
        return self._ask(list_of(text), "standing", place=place)

    # Clocks.

    def clock_offset(self, clock: Clock) -> Offset:
        """Measure how far the node's monotonic clock is ahead of ``clock``."""
        return measure_offset(lambda: self._ask(lambda clocks: whole(fields(clocks)["mono"]), "clock"), clock)

    def close(self) -> None:
        """Let the remote helper end. Processes that it has started go on."""
        self._closing = True
        self._transport.close()
        if threading.current_thread() is not self._reader:
            self._reader.join(CALL_SECONDS)

    # Talking.

    def _introduced(self) -> Introduction:
        try:
            hello = self._hello.get(timeout=HELLO_SECONDS)
        except queue.Empty:
            raise HelperLost(
                f"node {self.node}: deadline 'remote helper' of {HELLO_SECONDS:g} s: its remote helper says nothing"
            ) from None
        if hello is None:
            raise HelperLost(f"node {self.node}: its remote helper could not be started: {self.lost}")
        if hello["hello"] is True or hello["hello"] != PROTOCOL:
            raise HelperLost(f"node {self.node}: its remote helper speaks protocol {hello['hello']!r}, not {PROTOCOL}")
        try:
            pid, uid = whole(hello["pid"]), whole(hello["uid"])
            words = (text(hello["host"]), text(hello["boot"]), text(hello["python"]), text(hello.get("network", "")))
            return Introduction(pid, uid, *words)
        except (KeyError, TypeError, ValueError) as error:
            raise HelperLost(f"node {self.node}: its remote helper did not introduce itself: {error}") from error

    def _call(self, request: str, /, *, seconds: float = CALL_SECONDS, raises: Errors = (), **arguments: Any) -> Any:
        number = next(self._numbers)
        mailbox: _Mailbox = queue.SimpleQueue()
        with self._lock:
            if self.lost is not None:
                raise HelperLost(f"node {self.node}: its remote helper was lost: {self.lost}")
            self._waiting[number] = mailbox
        try:
            self._send({"number": number, "request": request, "arguments": arguments})
            answer = mailbox.get(timeout=seconds)
        except queue.Empty:
            raise HelperLost(
                f"node {self.node}: deadline 'remote helper {request}' of {seconds:g} s: it does not answer"
            ) from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if answer is None:
            raise HelperLost(f"node {self.node}: its remote helper was lost: {self.lost}")
        if "error" in answer:
            words = answer.get("text")
            reason = words[:_SAID] if isinstance(words, str) else "its remote helper does not say why it refuses that"
            kind = next((error for error in raises if error.__name__ == answer["error"]), PlatformError)
            raise kind(f"node {self.node}: {request}: {reason}")
        return answer["result"]

    def _post(self, request: str, /, **arguments: Any) -> None:
        """Send a request whose answer nobody waits for."""
        if self.lost is None:
            try:
                self._writer.send({"number": next(self._numbers), "request": request, "arguments": arguments})
            except OSError:
                return  # the reader finds out why

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._writer.send(message)
        except OSError as error:
            self._reader.join(1.0)  # it finds out why
            raise HelperLost(f"node {self.node}: its remote helper was lost: {self.lost or error}") from error

    def _read(self) -> None:
        why = ""
        try:
            for message in messages(self._transport.read):
                self._take(message)
        except (NotTheProtocol, KeyError, TypeError, ValueError) as error:
            why = f"it sent an invalid message: {error}"
        except OSError as error:
            why = str(error)
        except Exception as error:  # without a reader every caller would wait for its deadline
            _log.exception("%s: its messages cannot be recorded", self)
            why = f"its messages cannot be recorded: {error!r}"
        self._lose(why)

    def _lose(self, why: str) -> None:
        try:
            why = "it was let go" if self._closing else why or self._transport.ended()
        except Exception as error:  # as above
            why = f"no reason is known: {error!r}"
        with self._lock:
            self.lost = why
            waiting, self._waiting = list(self._waiting.values()), {}
            visits, self._visits = list(self._visits.values()), {}
        for mailbox in waiting:
            mailbox.put(None)
        self._hello.put(None)
        for visit in visits:
            try:
                visit.end()
            except Exception:  # the others are to hear of it too
                _log.exception("%s: the end of an agent cannot be taken in", self)

    def _take(self, message: dict[str, Any]) -> None:
        if "answer" in message:
            if "error" not in message and "result" not in message:
                raise NotTheProtocol("an answer with neither a result nor an error")
            with self._lock:
                mailbox = self._waiting.get(whole(message["answer"]))
            if mailbox is not None:
                mailbox.put(message)
        elif "hello" in message:
            if self._greeted:
                raise NotTheProtocol("a second hello")
            self._greeted = True
            self._hello.put(message)
        else:
            self._take_event(message)

    def _take_event(self, event: dict[str, Any]) -> None:
        name, caller = event["event"], whole(event["caller"])
        if not self._begun:
            raise NotTheProtocol(f"an event {name!r} before it has begun")
        if name == "agent.open" and self._visitors is not None:
            if caller in self._visits:
                raise NotTheProtocol(f"caller {caller} twice")
            self._visits[caller] = self._visitors.visit(self, caller, whole(event["pid"]), whole(event["uid"]))
        elif name == "agent.line" and caller in self._visits:
            self._visits[caller].hear(text(event["line"]).encode())
        elif name == "agent.end" and caller in self._visits:
            self._visits.pop(caller).end()

    def _identity(self, value: Any) -> ProcessIdentity:
        return replies.identity(value, self.node)

    def _found_process(self, value: Any) -> FoundProcess:
        return replies.found_process(value, self.node)

    def _ended(self, value: Any) -> Ended:
        return replies.ended_processes(value, self.node)


Open = Callable[[int], HelperClient]
"""Starts a remote helper on the node of that number."""
