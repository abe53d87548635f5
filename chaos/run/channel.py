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
from typing import Any

from chaos.agent.unproven import Unproven, callers

_CREDENTIALS = struct.Struct("3i")
_MAX_LINE = 1 << 16
_BACKLOG = 256
_HELLO_SECONDS = 10.0
"""An agent introduces itself at once; who says nothing for so long is a stranger."""


@dataclass(frozen=True)
class Hello:
    """An agent that has proved itself. ``pid`` is the kernel's word, not the agent's."""

    connection: Connection
    attempt: str
    rank: int
    pid: int


@dataclass(frozen=True)
class DeskHello:
    """A desk that has proved itself: a part of the job that does what the harness tells it.

    ``desk`` is ``controller`` (beside the SDK's controller) or ``worker`` (in a rank). ``pid`` is the kernel's word.
    """

    connection: Connection
    attempt: str
    desk: str
    rank: int | None
    pid: int


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
class Stranger:
    """Somebody who is not an agent of this run knocked, and was ignored."""

    pid: int
    what: str


Message = Hello | DeskHello | AtBarrier | Stranger


class Connection:
    """The connection of one agent."""

    def __init__(self, peer: socket.socket) -> None:
        self._socket = peer

    def answer(self, message: dict[str, Any]) -> None:
        """Answer the agent; does nothing when its process has ended."""
        try:
            self._socket.sendall((json.dumps(message) + "\n").encode())
        except OSError:
            return

    def close(self) -> None:
        """End the connection; a rank that is held goes on."""
        with contextlib.suppress(OSError):  # the rank may have closed it already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Channel:
    """Listens for agents of ``run`` on ``path`` and collects what they say in ``messages``.

    Who has not introduced itself after ``hello_seconds`` is a stranger.
    """

    def __init__(self, path: Path, *, run: str, secret: str, hello_seconds: float = _HELLO_SECONDS) -> None:
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._run = run
        self._secret = secret
        self._connections: set[Connection] = set()
        self._closing = threading.Event()
        self._unproven = Unproven(seconds=hello_seconds)
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(_BACKLOG)
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

    def strangers(self) -> Iterator[Stranger]:
        """Those of ``messages`` that nobody has taken: who called while no job was followed."""
        while True:
            try:
                message = self.messages.get_nowait()
            except queue.Empty:
                return
            if isinstance(message, Stranger):
                yield message

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
        with peer.makefile("rb") as lines:
            first = next(_messages(lines.readline), None)
            self._unproven.leave(peer)
            refusal = "said nothing that can be read" if first is None else self._refusal(first, uid)
            if first is None or refusal is not None:
                self.messages.put(Stranger(pid, f"a connection {refusal}; ignored"))
            else:
                hello = _introduction(connection, pid, first)
                self.messages.put(hello)
                for message in _messages(lines.readline):
                    self.messages.put(_at_barrier(hello, message))
        # A held rank whose connection has ended is not waiting any more, whatever ended it.
        with self._lock:
            self._connections.discard(connection)
        connection.close()

    def _refusal(self, message: dict[str, Any], uid: int) -> str | None:
        """Why a first message proves nothing; None when it does. Nothing of what it said is repeated in the reason."""
        if uid != os.geteuid():
            return f"is of user {uid}"
        if not _introduces(message):
            return "did not introduce itself as an agent does"
        if message["run"] != self._run:
            return "is of another run"
        secret = message["secret"]
        if not secret.isascii() or not hmac.compare_digest(secret, self._secret):
            return "did not show this run's secret"
        return None


def _introduces(message: dict[str, Any]) -> bool:
    match message:
        case {
            "message": "hello",
            "secret": str(),
            "run": str(),
            "attempt": str(),
            "desk": "controller" | "worker",
            "rank": int() | None,
        }:
            return True
        case {"message": "hello", "secret": str(), "run": str(), "attempt": str(), "rank": int()}:
            return "desk" not in message
        case _:
            return False


def _introduction(connection: Connection, pid: int, message: dict[str, Any]) -> Hello | DeskHello:
    if "desk" in message:
        return DeskHello(connection, message["attempt"], message["desk"], message["rank"], pid)
    return Hello(connection, message["attempt"], message["rank"], pid)


def _at_barrier(hello: Hello | DeskHello, message: dict[str, Any] | None) -> Message:
    match message:
        case {"message": "barrier", "fault": str(fault), "step": int(step), "phase": str(phase)} if isinstance(
            hello, Hello
        ):
            return AtBarrier(hello.connection, hello.attempt, hello.rank, fault, step, phase)
        case _:
            return Stranger(hello.pid, f"rank {hello.rank} sent a message that no agent sends; ignored")


def _messages(read_line: Callable[[int], bytes]) -> Iterator[dict[str, Any] | None]:
    """The JSON objects of a connection until it ends; if it sends something else, None is the last."""
    while True:
        try:
            line = read_line(_MAX_LINE)
        except OSError:
            return
        if not line.endswith(b"\n") and len(line) < _MAX_LINE:
            return
        message = _object(line)
        yield message
        if message is None:
            return


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
