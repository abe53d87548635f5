"""Where the ranks of a communicator meet: each gets a connection to every other, and proof of who is at its end.

A rank calls those of a lower number and listens for the others. Nobody is waited for in silence: whoever meets the
others is asked, again and again, whether it still wants to.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import selectors
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Callable

_HELLO = struct.Struct("<32sII")
_POLL_SECONDS = 0.01
_CONNECT_SECONDS = 5.0
_MOST_CALLERS = 256
"""Connections that may be silent at a time; of more, the oldest is a stranger."""


class Rendezvous:
    """The meeting of ``rank`` with the other ``ranks``, by files of the ranks' names in ``directory``.

    These are Unix sockets or, with ``address``, this node's own on a network of the run, files that say where a rank
    listens over TCP. Who does not prove that it knows ``secret`` is told of to ``on_stranger`` and dropped.
    """

    def __init__(
        self,
        rank: int,
        ranks: Sequence[int],
        directory: str,
        secret: bytes,
        *,
        on_stranger: Callable[[str], None],
        address: str | None = None,
    ) -> None:
        self._rank = rank
        self._ranks = ranks
        self._directory = directory
        self._secret = secret
        self._on_stranger = on_stranger
        self._address = address
        self.port: int | None = None
        """That which this rank has listened on; None over Unix sockets."""

    def meet(self, still: Callable[[list[int]], None]) -> Iterator[tuple[int, socket.socket]]:
        """The other ranks with their connections, as they come; a rank that calls again takes its own place.

        ``still`` is called in between with the ranks that are missing; what it raises ends the meeting.
        """
        path = self._path(self._rank)
        _unlink(path)  # left by a process of this rank that was ended while it joined
        missing = [rank for rank in self._ranks if rank != self._rank]
        with self._socket() as listener, _Callers(listener, path, self._address) as callers:
            self.port = None if self._address is None else listener.getsockname()[1]
            while missing:
                still(missing)
                for other in [rank for rank in missing if rank < self._rank]:
                    connection = self._connected(other)
                    if connection is not None:
                        missing.remove(other)
                        yield other, connection
                for connection, hello in callers.introduced():
                    caller = self._admitted(connection, hello)
                    if caller is not None:
                        if caller in missing:
                            missing.remove(caller)
                        yield caller, connection
            for connection, hello in callers.silent():
                caller = self._admitted(connection, hello)
                if caller is not None:
                    yield caller, connection

    def _path(self, rank: int) -> str:
        return os.path.join(self._directory, f"rank-{rank}")

    def _proof(self, rank: int) -> bytes:
        return hmac.new(self._secret, f"communicator {rank}".encode(), "sha256").digest()

    def _connected(self, other: int) -> socket.socket | None:
        """A connection to a rank that listens; None where it does not yet."""
        if (place := self._place_of(other)) is None:
            return None
        connection = self._socket()
        try:
            connection.connect(place)
            connection.sendall(_HELLO.pack(self._proof(self._rank), self._rank, len(self._ranks)))
        except OSError:
            connection.close()
            return None
        return connection

    def _socket(self) -> socket.socket:
        if self._address is None:
            return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.settimeout(_CONNECT_SECONDS)
        return made

    def _place_of(self, other: int) -> Any:
        """Where a rank listens; None where it has not said so yet."""
        if self._address is None:
            return self._path(other)
        try:
            with open(self._path(other), encoding="ascii") as file:
                host, port = file.read().split()
        except (OSError, ValueError):
            return None
        return host, int(port)

    def _admitted(self, connection: socket.socket, hello: bytes) -> int | None:
        """The rank of a caller, if its hello proves it; otherwise it is dropped."""
        proof, rank, size = _HELLO.unpack(hello.ljust(_HELLO.size, b"\0"))
        if not hmac.compare_digest(proof, self._proof(rank)) or size != len(self._ranks):
            connection.close()
            self._on_stranger(f"a connection that says it is rank {rank} of {size} did not prove it; dropped")
            return None
        return int(rank)


class _Callers:
    """Those who connect to a rank that joins. None of them can hold up the others by saying nothing."""

    def __init__(self, listener: socket.socket, path: str, address: str | None) -> None:
        self._listener = listener
        self._path = path
        self._selector = selectors.DefaultSelector()
        self._said: dict[socket.socket, bytes] = {}
        if address is None:
            listener.bind(path)
            listener.listen()
        else:
            listener.bind((address, 0))
            listener.listen()
            unfinished = f"{path}.{os.getpid()}"
            with open(unfinished, "w", encoding="ascii") as file:
                file.write(f"{address} {listener.getsockname()[1]}")
            os.replace(unfinished, path)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def __enter__(self) -> _Callers:
        return self

    def __exit__(self, *error: object) -> None:
        for connection in self._said:
            connection.close()
        self._selector.close()
        _unlink(self._path)

    def introduced(self) -> list[tuple[socket.socket, bytes]]:
        """Callers that have said all of their hello, or hung up before; waits a moment for the next."""
        done = []
        for key, _ in self._selector.select(_POLL_SECONDS):
            if key.fileobj is self._listener:
                connection, _ = self._listener.accept()
                self._selector.register(connection, selectors.EVENT_READ)
                self._said[connection] = b""
                if len(self._said) > _MOST_CALLERS:
                    oldest = next(iter(self._said))
                    self._selector.unregister(oldest)
                    done.append((oldest, self._said.pop(oldest)))
            elif key.fileobj in self._said:
                done += self._hear(key.fileobj)
        return done

    def silent(self) -> list[tuple[socket.socket, bytes]]:
        """Callers that have not said all of their hello; they are forgotten here."""
        left, self._said = list(self._said.items()), {}
        return left

    def _hear(self, connection: Any) -> list[tuple[socket.socket, bytes]]:
        try:
            chunk = connection.recv(_HELLO.size - len(self._said[connection]))
        except OSError:
            chunk = b""
        self._said[connection] += chunk
        if chunk and len(self._said[connection]) < _HELLO.size:
            return []
        self._selector.unregister(connection)
        return [(connection, self._said.pop(connection))]


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
