"""The harness's end of the channel to the agents: one owner-only Unix socket a run.

It can stop ranks at will, so it is guarded three times: the socket is in the run's private directory, every agent
shows the run's secret, and the kernel says which process is at the other end.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Listens for agents of ``run`` on ``path`` and collects what they say in ``messages``."""

    def __init__(self, path: Path, *, run: str, secret: str) -> None:
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._run = run
        self._secret = secret
        self._connections: set[Connection] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(_BACKLOG)
        threading.Thread(target=self._accept, name="channel", daemon=True).start()

    def close(self) -> None:
        """Stop listening and let every held rank go."""
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):  # nothing to shut down
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._closed = True
            for connection in self._connections:
                connection.close()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        pid, _, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        connection = Connection(peer)
        with self._lock:
            if self._closed:
                connection.close()
                return
            self._connections.add(connection)
        with peer.makefile("rb") as lines:
            peer.settimeout(_HELLO_SECONDS)
            hello = self._greet(connection, pid, next(_messages(lines.readline), None))
            if hello is None:
                self.messages.put(Stranger(pid, "a connection did not show this run's secret; ignored"))
            else:
                peer.settimeout(None)
                self.messages.put(hello)
                for message in _messages(lines.readline):
                    self.messages.put(_at_barrier(hello, message))
        # A held rank whose connection has ended is not waiting any more, whatever ended it.
        with self._lock:
            self._connections.discard(connection)
        connection.close()

    def _greet(self, connection: Connection, pid: int, message: dict[str, Any] | None) -> Hello | DeskHello | None:
        match message:
            case {
                "message": "hello",
                "secret": str(secret),
                "run": self._run,
                "attempt": str(attempt),
                "desk": "controller" | "worker" as desk,
                "rank": int() | None as rank,
            } if secret.isascii() and hmac.compare_digest(secret, self._secret):
                return DeskHello(connection, attempt, desk, rank, pid)
            case {
                "message": "hello",
                "secret": str(secret),
                "run": self._run,
                "attempt": str(attempt),
                "rank": int(rank),
            } if (
                message is not None
                and "desk" not in message
                and secret.isascii()
                and hmac.compare_digest(secret, self._secret)
            ):
                return Hello(connection, attempt, rank, pid)
            case _:
                return None


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
