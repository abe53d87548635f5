"""The communicator of a rehearsal: sums arrays over ranks, can be aborted, and gives the same bits every time.

MindSpore's own CPU collectives cannot go on after the death of a rank (observed on MindSpore 2.10: the others end after
28 s), and on Ascend it is HCCL, not MindSpore, that is stopped and rebuilt. So this is one of the parts that a
rehearsal substitutes.

Every rank sends its array to every other rank, and each sums what it got in the order of ranks: no root that can die,
and the same result whatever the order of arrival. Of many ranks the first one sums and gives the result to the others,
or each step would take as many messages as there are pairs; the order, and with it the result, is the same. Many ranks
on one machine have no connection that they do not use: all join at the first one, which says when all have come, and
two others meet when both are first in a collective, or a transfer, that needs it. A dead peer does not end a
collective: as on a device, the others stay in it until they are told to stop.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import socket
import threading
import time
import zlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Callable

import numpy

from chaos.base.growth import in_words
from chaos.base.rank_sets import named, rank_set
from chaos.rehearsal.device.peer import Peer, frame, gone_at, missing, unsent
from chaos.rehearsal.device.presence import Presence
from chaos.rehearsal.device.rendezvous import Rendezvous

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK = 1 << 20
_DIRECT = 1 << 63
"""Sequence numbers from here on belong to what one rank sends to another alone."""
_GROUP_SHIFT = 32
_GROUP_MASK = 0x7FFFFFFF
"""Above the count of a collective, a sequence number holds the mark of its group; 0 is that of all ranks."""
_ASKED = 1 << 31
"""In a sequence number: not a part of the collective, but what the others give to it."""
_MESH = 16
"""Members of a group that give each its array to every other one. Of more the first sums for all."""
_ALL_HERE = 0
"""Sequence number of what the first of many ranks says when all have joined; that of a collective is never 0."""
_LOOK_SECONDS = 1.0
"""How often a rank that waits to meet others looks whether their processes have ended."""


class CommunicationAborted(RuntimeError):
    """The collective was told to stop."""


class CommunicationTimeout(RuntimeError):
    """A collective or the joining of ranks outlasted its limit. Names the ranks that did not answer."""


class Communicator:
    """All-reduce among ``ranks`` over Unix sockets in ``directory``, which only the run's owner can enter.

    With ``address``, this node's own on a network of the run, it is over TCP, and the files in ``directory`` say where
    the ranks listen.

    A peer must prove that it knows the run's ``secret``; one that does not is reported to ``on_stranger`` and dropped.
    ``limit_seconds`` bounds each collective, ``join_seconds`` the joining (by default as long). ``deserted_seconds`` is
    how long a collective is waited in for a rank that has gone, where nobody is to stop it.
    """

    def __init__(
        self,
        rank: int,
        ranks: Sequence[int],
        directory: str,
        secret: bytes,
        *,
        limit_seconds: float,
        on_stranger: Callable[[str], None],
        join_seconds: float | None = None,
        address: str | None = None,
        deserted_seconds: float | None = None,
    ) -> None:
        self.rank = rank
        self._deserted_seconds = deserted_seconds
        self.ranks = sorted(ranks)
        self._limit_seconds = limit_seconds
        self._join_seconds = limit_seconds if join_seconds is None else join_seconds
        self._directory, self._secret, self._on_stranger = directory, secret, on_stranger
        self._rendezvous = Rendezvous(rank, self.ranks, directory, secret, on_stranger=on_stranger, address=address)
        self._presence = Presence(rank, directory) if len(self.ranks) > _MESH and address is None else None
        """None where each has a connection to every other one, by which it knows whether that has gone."""
        self._peers = {other: Peer(other) for other in self.ranks if other != rank}
        self._counts: dict[tuple[int, ...], int] = {}
        self._direct: dict[tuple[int, int], int] = {}
        self._selector = selectors.DefaultSelector()
        self._aborted = threading.Event()
        self.link_error: str | None = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)

    def join(self) -> None:
        """Wait for all other ranks to join. Raises CommunicationTimeout naming those that never came."""
        deadline = time.monotonic() + self._join_seconds
        if self._presence is not None:
            self._presence.enter()
            if self.rank != self.ranks[0]:
                self._join_at(self._peers[self.ranks[0]], deadline)
                return
        self._meet(self._rendezvous, lambda missing: self._check_join(deadline, missing))
        if self._presence is not None:
            self._say_all_here(deadline)

    def _say_all_here(self, deadline: float) -> None:
        self._offer(list(self._peers.values()), _ALL_HERE, numpy.zeros(0, numpy.uint8))
        while untold := [peer.rank for peer in self._peers.values() if peer.outgoing]:
            self._check_join(deadline, untold)
            self._serve_ready(max(0.0, deadline - time.monotonic()))

    def _join_at(self, first: Peer, deadline: float) -> None:
        """Meet the first rank, again where it hangs up, until it says that all have come."""
        while _ALL_HERE not in first.arrived:
            self._check_join(deadline, [first.rank])
            if not first.met or first.gone:
                self._meet(self._rendezvous, lambda missing: self._check_join(deadline, missing), [first.rank])
            self._serve_ready(max(0.0, deadline - time.monotonic()))
        del first.arrived[_ALL_HERE]

    def _meet(
        self,
        rendezvous: Rendezvous,
        still: Callable[[Collection[int]], Collection[int]],
        others: Collection[int] | None = None,
    ) -> None:
        for rank, connection in rendezvous.meet(still, others):
            self._connect(self._peers[rank], connection)

    def _connect(self, peer: Peer, connection: socket.socket) -> None:
        """Take a peer's connection, in place of an earlier one that it has left."""
        if peer.met and not peer.gone:
            self._lose(peer)
        connection.setblocking(False)
        peer.meet(connection)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.outgoing else 0)
        self._selector.register(connection, events, peer)

    def _reach(self, peers: Sequence[Peer], members: Sequence[int], still: Callable[[], object]) -> None:
        """Meet those of these peers that have not been met; each is in the same collective, or comes to it.

        ``still`` is called in between; what it raises ends the meeting.
        """
        unmet = [peer.rank for peer in peers if not peer.met and not peer.gone]
        if not unmet:
            return
        next_look = 0.0

        def ended(missing: Collection[int]) -> Collection[int]:
            nonlocal next_look
            still()
            self._serve_ready(0.0)
            if time.monotonic() < next_look:
                return ()
            next_look = time.monotonic() + _LOOK_SECONDS
            return self._lose_ended(missing)

        door = hashlib.sha256(repr(tuple(members)).encode()).hexdigest()[:4]  # no longer than "rank": paths are limited
        place = Rendezvous(
            self.rank, self.ranks, self._directory, self._secret, on_stranger=self._on_stranger, door=door
        )
        self._meet(place, ended, unmet)

    def _lose_ended(self, ranks: Collection[int]) -> list[int]:
        """Return the ranks that joined and whose processes have ended before they met; they are lost from here on."""
        assert self._presence is not None
        ended = [rank for rank in ranks if not self._presence.is_here(rank)]
        for rank in ended:
            self._lose(self._peers[rank])
        return ended

    @property
    def port(self) -> int | None:
        """The TCP port that the ranks after this one have called it at; None over Unix sockets."""
        return self._rendezvous.port

    def all_reduce(self, array: NDArray[Any], group: Collection[int] | None = None) -> NDArray[Any]:
        """Sum ``array`` over the ranks of ``group`` (default: all), in the order of ranks; blocks until each has
        contributed.

        A group has no connections of its own: it is stopped and rebuilt with the communicator. Raises ValueError for a
        group that this rank is not in, CommunicationAborted when told to stop, CommunicationTimeout after the limit.
        """
        members = self.ranks if group is None else sorted(group)
        if self.rank not in members or not set(members) <= set(self.ranks):
            raise ValueError(
                f"rank {self.rank} cannot reduce over {named(members)}: it must be one of them, and they of "
                f"{named(self.ranks)}"
            )
        sequence = self._next_collective(tuple(members))
        payload = numpy.asarray(array, order="C")  # ascontiguousarray would make a scalar one-dimensional
        peers = [self._peers[rank] for rank in members if rank != self.rank]
        if len(members) <= _MESH:
            self._offer(peers, sequence, payload)
            self._gather(peers, sequence, members)
            return self._sum(members, sequence, payload)
        if self.rank == members[0]:
            return self._sum_for_all(members, peers, sequence, payload)
        first = self._peers[members[0]]
        self._offer([first], sequence, payload)
        self._gather([first], sequence, members, f", which adds up for {rank_set(members)}")
        return first.take(sequence, payload).copy()

    def _sum_for_all(
        self, members: Sequence[int], peers: Sequence[Peer], sequence: int, payload: NDArray[Any]
    ) -> NDArray[Any]:
        """Sum what all give, and give it to each. One may ask first what the others give, before it gives its own."""
        asked = sequence | _ASKED
        self._exchange(
            lambda: missing([peer for peer in peers if asked not in peer.arrived], sequence),
            lambda: gone_at([peer for peer in peers if asked not in peer.arrived], sequence),
            meeting=(peers, members),
        )
        for asking in peers:
            if asking.arrived.pop(asked, None) is not None:
                others = [peer.arrived[sequence] for peer in peers if peer is not asking]
                self._offer([asking], asked, numpy.frombuffer(b"".join([payload.tobytes(), *others]), numpy.uint8))
                self._gather([asking], sequence, members)
        total = self._sum(members, sequence, payload)
        self._offer(peers, sequence, total)
        self._exchange(lambda: unsent(peers))
        return total

    def _sum(self, members: Sequence[int], sequence: int, own: NDArray[Any]) -> NDArray[Any]:
        """What all have given, added up in the order of ranks."""
        total = None
        for rank in members:
            part = own if rank == self.rank else self._peers[rank].take(sequence, own)
            total = part.copy() if total is None else total + part
        assert total is not None
        return total

    def _offer(self, peers: Sequence[Peer], sequence: int, payload: NDArray[Any]) -> None:
        """Send this to each of these, as soon as they take it."""
        for peer in peers:
            if not peer.gone:
                peer.outgoing = frame(self.rank, sequence, payload)
            if peer.met and not peer.gone:
                self._selector.modify(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)

    def _gather(self, peers: Sequence[Peer], sequence: int, members: Sequence[int], more: str = "") -> None:
        """Wait until each of these has given its part, and has taken what is offered."""

        def waits() -> str | None:
            waiting = missing(peers, sequence)
            return None if waiting is None else waiting + more

        self._exchange(waits, lambda: gone_at(peers, sequence), meeting=(peers, members))

    def expected(self, like: NDArray[Any], group: Collection[int] | None = None) -> list[NDArray[Any]]:
        """What the other ranks of ``group`` give to their next all-reduce, in the order of ranks; waits for them all.

        They are in it already, or will be; it stays to be taken by :meth:`all_reduce`. Only one rank may ask.
        """
        members = self.ranks if group is None else sorted(group)
        peers = [self._peers[rank] for rank in members if rank != self.rank]
        sequence = self._number(tuple(members), self._counts.get(tuple(members), 0) + 1)
        if len(members) > _MESH and self.rank != members[0]:
            asked, first = sequence | _ASKED, self._peers[members[0]]
            self._offer([first], asked, numpy.zeros(0, numpy.uint8))
            self._gather([first], asked, members, f", which gathers from {rank_set(members)}")
            return list(numpy.frombuffer(first.arrived.pop(asked), like.dtype).reshape(len(peers), *like.shape))
        self._exchange(lambda: missing(peers, sequence), meeting=(peers, members))
        return [numpy.frombuffer(peer.arrived[sequence], like.dtype).reshape(like.shape) for peer in peers]

    def send(self, other: int, array: NDArray[Any]) -> None:
        """Send an array to one rank, which must call :meth:`receive`. Not while a collective is under way."""
        payload = numpy.asarray(array, order="C")
        sequence = self._next_direct(self.rank, other)
        peer = self._peers[other]
        self._offer([peer], sequence, payload)
        self._exchange(
            lambda: f"to send to rank {other}" if peer.outgoing else None, meeting=([peer], (self.rank, other))
        )

    def receive(self, other: int, like: NDArray[Any]) -> NDArray[Any]:
        """Receive from one rank an array with the type and shape of ``like``."""
        sequence = self._next_direct(other, self.rank)
        peer = self._peers[other]
        self._exchange(
            lambda: None if sequence in peer.arrived else f"to receive from rank {other}",
            meeting=([peer], (other, self.rank)),
        )
        return peer.take(sequence, like)

    def _next_collective(self, members: tuple[int, ...]) -> int:
        """Each group counts its own collectives; all its members come to the same number."""
        self._counts[members] = count = self._counts.get(members, 0) + 1
        return self._number(members, count)

    def _number(self, members: tuple[int, ...], count: int) -> int:
        mark = 0 if len(members) == len(self.ranks) else zlib.crc32(repr(members).encode()) & _GROUP_MASK
        return mark << _GROUP_SHIFT | count

    def _next_direct(self, source: int, target: int) -> int:
        self._direct[source, target] = self._direct.get((source, target), 0) + 1
        return _DIRECT + self._direct[source, target]

    def close(self) -> None:
        """End all connections."""
        for peer in self._peers.values():
            if peer.met:
                peer.socket.close()
        if self._presence is not None:
            self._presence.leave()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def sever(self) -> None:
        """Take this rank's link down: nothing is sent or received any more, and no connection is closed.

        A collective then waits for its limit, as its peers do. ``link_error`` says from here on what a device reports.
        Only from the thread that calls the collectives.
        """
        for peer in self._peers.values():
            if not peer.gone:
                peer.gone, peer.outgoing = True, []
                if peer.met:
                    self._selector.unregister(peer.socket)
        self.link_error = "error cqe: the link of the parameter plane is down"

    @property
    def aborted(self) -> bool:
        """Whether it has been told to stop."""
        return self._aborted.is_set()

    def abort(self) -> None:
        """End a blocked collective, and refuse further ones. May be called from any thread."""
        self._aborted.set()
        os.write(self._wake_write, b"x")

    def _exchange(
        self,
        waits: Callable[[], str | None],
        deserted: Callable[[], float | None] = lambda: None,
        *,
        meeting: tuple[Sequence[Peer], Sequence[int]] = ((), ()),
    ) -> None:
        """Serve all peers until ``waits`` has nothing to say any more.

        ``deserted`` says since when a rank has gone that can give no more what is waited for; None where none has.
        ``meeting`` is whom this needs a connection to, and of which ranks' exchange it is.
        """
        deadline = time.monotonic() + self._limit_seconds

        def left() -> float | None:
            """Seconds to wait at most; None where it is over."""
            if self._aborted.is_set():
                raise CommunicationAborted("the collective was told to stop")
            if (waiting := waits()) is None:
                return None
            left = deadline - time.monotonic()
            if self._deserted_seconds is not None and (since := deserted()) is not None:
                self._check_deserted(since, waiting)
                left = min(left, since + self._deserted_seconds - time.monotonic())
            if left <= 0:
                raise CommunicationTimeout(f"rank {self.rank} waited {in_words(self._limit_seconds)} {waiting}")
            return left

        self._reach(*meeting, left)
        while (seconds := left()) is not None:
            self._serve_ready(seconds)

    def _serve_ready(self, seconds: float) -> None:
        """Serve those peers that are ready, or become so within so many seconds."""
        for key, events in self._selector.select(seconds):
            if key.data is not None:
                self._serve(key.data, events)

    def _check_deserted(self, since: float, waiting: str) -> None:
        """Whoever has gone sends nothing more, however busy the machine is."""
        assert self._deserted_seconds is not None
        if time.monotonic() - since >= self._deserted_seconds:
            raise CommunicationTimeout(
                f"rank {self.rank} waited {self._deserted_seconds:g} s {waiting}, of which one has gone"
            )

    def _serve(self, peer: Peer, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._send(peer)
        if events & selectors.EVENT_READ:
            self._receive(peer)

    def _receive(self, peer: Peer) -> None:
        try:
            chunk = peer.socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            peer.incoming += chunk
            peer.take_frames()
        else:
            self._lose(peer)

    def _send(self, peer: Peer) -> None:
        try:
            while peer.outgoing:
                sent = peer.socket.send(peer.outgoing[0])
                peer.outgoing[0] = peer.outgoing[0][sent:]
                if len(peer.outgoing[0]):
                    return
                peer.outgoing.pop(0)
        except BlockingIOError:
            return
        except OSError:
            peer.outgoing = []  # it has died; what it sent before that is still to be received
        self._selector.modify(peer.socket, selectors.EVENT_READ, peer)

    def _lose(self, peer: Peer) -> None:
        """Stop listening to a dead peer; whoever waits for it goes on waiting until told to stop."""
        peer.gone, peer.gone_at = True, time.monotonic()
        peer.outgoing = []
        if peer.met:
            self._selector.unregister(peer.socket)
            peer.socket.close()

    def _check_join(self, deadline: float, missing: Collection[int]) -> Collection[int]:
        """Raise where joining is over; else nobody is given up."""
        if self._aborted.is_set():
            raise CommunicationAborted("joining was told to stop")
        if time.monotonic() > deadline:
            if self._presence is not None and self.rank != self.ranks[0]:
                missing = [rank for rank in self._peers if not self._presence.has_come(rank)] or missing
            raise CommunicationTimeout(
                f"rank {self.rank} waited {in_words(self._join_seconds)} for {rank_set(missing, len(self.ranks))} "
                "to join the communicator"
            )
        return ()
