"""The harness's end of the channel to the agents: one owner-only Unix socket a run.

It can stop ranks at will, so it is guarded three times: the socket is in the run's private directory, every agent
shows the run's secret, and the kernel says which process is at the other end.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.agent.unproven import Unproven, callers
from chaos.base.growth import Growing

if TYPE_CHECKING:
    from chaos.machine.remote.client import HelperClient

_CREDENTIALS = struct.Struct("3i")
_MAX_LINE = 1 << 16
_BACKLOG = 256
_HELLO_SECONDS = 10.0
"""Seconds in which an agent must introduce itself; a caller that stays silent longer is refused."""
_EACH_HELLO = 0.25
"""Seconds by which each rank that starts on the same cores may delay another one's first word."""


@dataclass(frozen=True)
class Hello:
    """An agent that has proved itself. ``pid`` is the kernel's word, not the agent's, on its node."""

    connection: Connection
    attempt: str
    rank: int
    pid: int
    node: int | None = None


@dataclass(frozen=True)
class EndpointHello:
    """A control endpoint that has proved itself: a part of the job that obeys the harness.

    ``endpoint`` is ``controller`` (beside the SDK's controller) or ``worker`` (in a rank). ``pid`` is the kernel's.
    """

    connection: Connection
    attempt: str
    endpoint: str
    rank: int | None
    pid: int
    node: int | None = None


@dataclass(frozen=True)
class AtBarrier:
    """A rank is held at an armed point until :meth:`Connection.answer` is called."""

    connection: Connection
    attempt: str
    rank: int
    fault: str
    step: int
    phase: str


@dataclass(frozen=True)
class RefusedCaller:
    """A caller that is not an agent of this run, and was ignored."""

    pid: int
    what: str
    node: int | None = None


Message = Hello | EndpointHello | AtBarrier | RefusedCaller


class Connection:
    """The connection of one agent."""

    def __init__(self, peer: socket.socket) -> None:
        self._socket = peer

    def answer(self, message: dict[str, Any]) -> None:
        """Answer the agent; do nothing when its process has ended."""
        try:
            self._socket.sendall((json.dumps(message) + "\n").encode())
        except OSError:
            return

    def close(self) -> None:
        """End the connection; a held rank goes on."""
        with contextlib.suppress(OSError):  # the rank may have closed it already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class RelayedConnection(Connection):
    """The connection of an agent on another node, whose remote helper relays the messages."""

    def __init__(self, helper: HelperClient, caller: int) -> None:
        self._helper = helper
        self._caller = caller

    def answer(self, message: dict[str, Any]) -> None:
        """Answer the agent; do nothing when its process, or the remote helper, has ended."""
        self._helper.answer(self._caller, json.dumps(message))

    def close(self) -> None:
        """End the connection; a held rank goes on."""
        self._helper.hang_up(self._caller)


class Channel:
    """Listens for agents of ``run`` on ``path`` and collects their words in ``messages``.

    A caller that has not introduced itself after ``hello_seconds`` is refused. All of the job's ``ranks`` may call at
    once.
    """

    def __init__(
        self, path: Path, *, run: str, secret: str, hello_seconds: float = _HELLO_SECONDS, ranks: int = 1
    ) -> None:
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._run = run
        self._secret = secret
        self._connections: set[Connection] = set()
        self._closing = threading.Event()
        most = max(_BACKLOG, 2 * ranks)  # a control endpoint in each rank calls too
        self._unproven = Unproven(most=most, seconds=Growing(hello_seconds, _EACH_HELLO, ranks))
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(most)
        self._acceptor = threading.Thread(target=self._accept, name="channel", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Stop listening and let every held rank go."""
        self._closing.set()
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):  # nothing to shut down
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                connection.close()

    def refused_callers(self) -> Iterator[RefusedCaller]:
        """Yield the refused callers among ``messages`` that nobody has taken: they called while no job was followed."""
        while True:
            try:
                message = self.messages.get_nowait()
            except queue.Empty:
                return
            if isinstance(message, RefusedCaller):
                yield message

    def visit(self, helper: HelperClient, caller: int, pid: int, uid: int) -> Visit:
        """Hear an agent that has called the remote helper of another node; it must prove the same."""
        return Visit(self, RelayedConnection(helper, caller), pid, uid, helper.introduction.uid, helper.node)

    def _accept(self) -> None:
        for peer in callers(self._listener, self._unproven, self._closing):
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        pid, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        connection = Connection(peer)
        with self._lock:
            if self._closing.is_set():
                connection.close()
                return
            self._connections.add(connection)
        visit = Visit(self, connection, pid, uid, os.geteuid())
        with peer.makefile("rb") as lines:
            for line in _lines(lines.readline):
                self._unproven.leave(peer)
                if not visit.hear(line):
                    break
        self._unproven.leave(peer)
        visit.end()
        # A held rank whose connection has ended no longer waits, whatever ended it.
        with self._lock:
            self._connections.discard(connection)
        connection.close()

    def refusal(self, message: dict[str, Any], uid: int, own_uid: int) -> str | None:
        """Return why a first message proves nothing; None when it proves the caller.

        The reason repeats nothing of the message.
        """
        if uid != own_uid:
            return f"is of user {uid}"
        if not _introduces(message):
            return "did not introduce itself as an agent does"
        if message["run"] != self._run:
            return "is of another run"
        secret = message["secret"]
        if not secret.isascii() or not hmac.compare_digest(secret, self._secret):
            return "did not show this run's secret"
        return None


class Visit:
    """One caller, from its first word on: the word proves it, or the caller is ignored.

    ``pid`` and ``uid`` are the word of the kernel that carried the call; ``own`` is the user of the agents there.
    """

    def __init__(
        self, channel: Channel, connection: Connection, pid: int, uid: int, own_uid: int, node: int | None = None
    ) -> None:
        self._channel = channel
        self._connection = connection
        self._pid = pid
        self._uid = uid
        self._own = own_uid
        self._node = node
        self._hello: Hello | EndpointHello | None = None
        self._over = False

    def hear(self, line: bytes) -> bool:
        """Take in a line; False when nothing more is heard from this caller."""
        if self._over:
            return False
        message = _object(line)
        if self._hello is None:
            self._begin(message)
        else:
            self._channel.messages.put(_at_barrier(self._hello, message))
            self._over = message is None
        return not self._over

    def end(self) -> None:
        """End the visit. A caller that has said nothing at all is reported too."""
        if self._hello is None and not self._over:
            self._refuse("sent nothing readable")

    def _begin(self, message: dict[str, Any] | None) -> None:
        refusal = "sent nothing readable" if message is None else self._channel.refusal(message, self._uid, self._own)
        if message is None or refusal is not None:
            self._refuse(refusal or "")
        else:
            self._hello = _introduction(self._connection, self._pid, message, self._node)
            self._channel.messages.put(self._hello)

    def _refuse(self, refusal: str) -> None:
        self._over = True
        self._channel.messages.put(RefusedCaller(self._pid, f"a connection {refusal}; ignored", self._node))
        self._connection.close()


def _introduces(message: dict[str, Any]) -> bool:
    match message:
        case {
            "message": "hello",
            "secret": str(),
            "run": str(),
            "attempt": str(),
            "endpoint": "controller" | "worker",
            "rank": int() | None,
        }:
            return True
        case {"message": "hello", "secret": str(), "run": str(), "attempt": str(), "rank": int()}:
            return "endpoint" not in message
        case _:
            return False


def _introduction(connection: Connection, pid: int, message: dict[str, Any], node: int | None) -> Hello | EndpointHello:
    if "endpoint" in message:
        return EndpointHello(connection, message["attempt"], message["endpoint"], message["rank"], pid, node)
    return Hello(connection, message["attempt"], message["rank"], pid, node)


def _at_barrier(hello: Hello | EndpointHello, message: dict[str, Any] | None) -> Message:
    match message:
        case {"message": "barrier", "fault": str(fault), "step": int(step), "phase": str(phase)} if isinstance(
            hello, Hello
        ):
            return AtBarrier(hello.connection, hello.attempt, hello.rank, fault, step, phase)
        case _:
            return RefusedCaller(
                hello.pid, f"rank {hello.rank} sent a message that no agent sends; ignored", hello.node
            )


def _lines(read_line: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield the lines of a connection until it ends, without a torn last line."""
    while True:
        try:
            line = read_line(_MAX_LINE)
        except OSError:
            return
        if not line.endswith(b"\n") and len(line) < _MAX_LINE:
            return
        yield line


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
