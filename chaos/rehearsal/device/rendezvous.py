"""The meeting of ranks in a communicator: each gets a proven connection to the ranks it asks for.

A rank calls the ranks of a lower number and listens for the others. No wait is silent: ``still`` asks the caller, again
and again, whether it still wants to meet the others.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from chaos.base.growth import Growing
from chaos.rehearsal.device.addresses import why_open
from chaos.rehearsal.device.introduction import Caller, Listener, Unproven

_POLL_SECONDS = 0.01
_EACH_POLLS = 0.0005
"""Added for each rank, so that the waiting ranks do not keep the others from coming by looking for them."""
_CONNECT_SECONDS = 5.0
_MOST_CALLERS = 256
"""Connections that may be silent at a time, where no more ranks can call; of more, the oldest is refused."""


@dataclass(eq=False)
class _Talk:
    """A connection on which two ranks introduce themselves, and the bytes received on it since the last answer.

    ``called`` is the rank that was called, None where the other side calls, and ``door`` the file by which it was
    found.
    """

    connection: socket.socket
    side: Caller | Listener
    called: int | None = None
    door: tuple[int, int] | None = None
    received: bytes = b""


class Rendezvous:
    """The meeting of ``rank`` with others of ``ranks``, by files of the ranks' names in ``directory``, behind ``door``.

    These are Unix sockets or, with ``address``, this node's own on a network of the run, files that say where a rank
    listens over TCP. A caller or listener that does not prove its knowledge of ``secret`` is reported to ``on_refused``
    and dropped.
    """

    def __init__(
        self,
        rank: int,
        ranks: Sequence[int],
        directory: str,
        secret: bytes,
        *,
        on_refused: Callable[[str], None],
        address: str | None = None,
        door: str = "rank",
    ) -> None:
        self._rank = rank
        self._ranks = ranks
        self._door = door
        self._directory = directory
        self._secret = secret
        self._on_refused = on_refused
        self._address = address
        self.port: int | None = None
        """The port that this rank has listened on; None over Unix sockets."""
        self._strange: set[tuple[int, int]] = set()
        """Doors with an unproven listener behind them: nobody knocks there again."""
        self._later: dict[int, float] = {}
        """Ranks that have hung up, and the times at which they are called again."""
        self._poll = Growing(_POLL_SECONDS, _EACH_POLLS, len(ranks))
        self._next_look = 0.0

    def meet(
        self, still: Callable[[Collection[int]], Collection[int]], others: Collection[int] | None = None
    ) -> Iterator[tuple[int, socket.socket]]:
        """Yield the ``others`` (default: all) with their connections, as they come. A second call replaces the first.

        Each of them must ask for this rank behind the same door. ``still`` is called in between with the missing ranks,
        and returns those that will not come; any error that it raises ends the meeting.
        """
        path = self._path(self._rank)
        _unlink(path)  # left by a process of this rank that was ended while it joined
        missing = {rank for rank in (self._ranks if others is None else others) if rank != self._rank}
        with (
            self._socket() as listener,
            _Talks(listener, path, self._address, self._listening, len(self._ranks), self._poll) as talks,
        ):
            self.port = None if self._address is None else listener.getsockname()[1]
            while missing:
                missing -= set(still(missing))
                for other in self._open_doors(missing - talks.called):
                    if (talk := self._call(other)) is not None:
                        talks.add(talk)
                for talk in talks.heard():
                    if not self._answer(talk):
                        talks.end(talk)
                    elif (met := talk.side.met) is not None:
                        talks.take(talk)
                        missing.discard(met)
                        yield met, talk.connection
            for talk in talks.going:
                if isinstance(talk.side, Listener):
                    self._on_refused(str(talk.side.unproven(talk.received)))

    def _open_doors(self, ranks: Collection[int]) -> list[int]:
        """Return those of these ranks that listen for this one, by one look at the directory.

        None of them between two looks.
        """
        lower = [rank for rank in ranks if rank < self._rank]
        if not lower or time.monotonic() < self._next_look:
            return []
        self._next_look = time.monotonic() + self._poll
        try:
            names = set(os.listdir(self._directory))
        except OSError:  # the run is being cleared away, and so is this process
            return []
        return [rank for rank in lower if os.path.basename(self._path(rank)) in names]

    def _path(self, rank: int) -> str:
        return os.path.join(self._directory, f"{self._door}-{rank}")

    def _listening(self) -> Listener:
        return Listener(self._secret, self._rank, self._ranks)

    def _answer(self, talk: _Talk) -> bool:
        """Answer the other side; return False at the end of the talk."""
        try:
            if len(talk.received) == talk.side.wants:
                answer, talk.received = talk.side.hear(talk.received), b""
                talk.connection.sendall(answer)
                return True
            if isinstance(talk.side, Listener) and not talk.side.introduced:
                raise talk.side.unproven(talk.received)
        except Unproven as unproven:
            self._on_refused(str(unproven))
            if talk.door is not None:
                self._strange.add(talk.door)
        except OSError:
            pass  # it has hung up
        if talk.called is not None:
            self._later[talk.called] = time.monotonic() + self._poll
        return False

    def _call(self, other: int) -> _Talk | None:
        """Return a talk with a rank that listens; None where it does not yet, or another process does."""
        door = _door(self._path(other))
        if door is None or door in self._strange or time.monotonic() < self._later.get(other, 0.0):
            return None
        if (place := self._place_of(other)) is None:
            return None
        side = Caller(self._secret, self._rank, other, len(self._ranks))
        connection = self._socket()
        try:
            connection.connect(place)
            connection.sendall(side.hello)
        except OSError:
            connection.close()
            return None
        return _Talk(connection, side, other, door)

    def _socket(self) -> socket.socket:
        if self._address is None:
            return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.settimeout(_CONNECT_SECONDS)
        return made

    def _place_of(self, other: int) -> Any:
        """Return where a rank listens; None where it has not published that yet."""
        if self._address is None:
            return self._path(other)
        try:
            with open(self._path(other), encoding="ascii") as file:
                host, port = file.read().split()
        except (OSError, ValueError):
            return None
        return host, int(port)


class _Talks:
    """The peers of a rank that joins: callers and called ones. No silent peer can hold up the others."""

    def __init__(
        self,
        listener: socket.socket,
        path: str,
        address: str | None,
        listening: Callable[[], Listener],
        ranks: int,
        poll: float,
    ) -> None:
        self._most, self._callers = max(_MOST_CALLERS, 2 * ranks), 0
        self._poll = poll
        self._listener = listener
        self._path = path
        self._listening = listening
        self._selector = selectors.DefaultSelector()
        self.going: list[_Talk] = []
        self.called: set[int] = set()
        """Ranks that were called, and have not answered yet."""
        if address is None:
            listener.bind(path)
            listener.listen(self._most)
        else:
            if (why := why_open(address)) is not None:
                raise ValueError(f"ranks meet on a private network only: {why}")
            listener.bind((address, 0))
            listener.listen(self._most)
            unfinished = f"{path}.{os.getpid()}"
            with open(unfinished, "w", encoding="ascii") as file:
                file.write(f"{address} {listener.getsockname()[1]}")
            os.replace(unfinished, path)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def __enter__(self) -> _Talks:
        return self

    def __exit__(self, *error: object) -> None:
        for talk in self.going:
            talk.connection.close()
        self._selector.close()
        _unlink(self._path)

    def add(self, talk: _Talk) -> None:
        """Listen to this talk from now on."""
        self._selector.register(talk.connection, selectors.EVENT_READ, talk)
        self.going.append(talk)
        if talk.called is not None:
            self.called.add(talk.called)

    def take(self, talk: _Talk) -> None:
        """Release the talk's connection."""
        self._selector.unregister(talk.connection)
        self.going.remove(talk)
        if talk.called is None:
            self._callers -= 1
        else:
            self.called.discard(talk.called)

    def end(self, talk: _Talk) -> None:
        """Hang up."""
        self.take(talk)
        talk.connection.close()

    def heard(self) -> list[_Talk]:
        """Return the talks with all expected bytes, or ended by the other side; waits a moment for the next."""
        done: dict[_Talk, None] = {}
        for key, _ in self._selector.select(self._poll):
            if key.fileobj is self._listener:
                connection, _ = self._listener.accept()
                self.add(_Talk(connection, self._listening()))
                self._callers += 1
                if self._callers > self._most:
                    done[next(talk for talk in self.going if talk.called is None)] = None
            elif _hear(key.data):
                done[key.data] = None
        return list(done)


def _hear(talk: _Talk) -> bool:
    try:
        chunk = talk.connection.recv(talk.side.wants - len(talk.received))
    except OSError:
        chunk = b""
    talk.received += chunk
    return not chunk or len(talk.received) == talk.side.wants


def _door(path: str) -> tuple[int, int] | None:
    """Return the identity of a file, which another file of its name does not share; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
