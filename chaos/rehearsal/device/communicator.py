"""The communicator of a rehearsal: sums arrays over ranks, can be aborted, and gives the same bits every time.

MindSpore's own CPU collectives cannot go on after the death of a rank (observed on MindSpore 2.10: the others end after
28 s), and on Ascend it is HCCL, not MindSpore, that is stopped and rebuilt. So the communicator is one of the parts
that a rehearsal substitutes.

Every rank sends its array to every other rank, and each sums the arrays in the order of ranks: there is no root that
can die, and the result is the same whatever the order of arrival. Among many ranks the first one sums and gives the
result to the others, or each step would take as many messages as there are pairs; the order, and with it the result, is
the same. Many ranks on one machine have no connection that they do not use: all join at the first one, which announces
that all have come, and two others meet when both are first in a collective, or a transfer, that needs their connection.
A dead peer does not end a collective: as on a device, the others stay in it until they are ordered to stop.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Callable

import numpy

from chaos.base.growth import in_words
from chaos.base.rank_sets import named, rank_set
from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.links import Links
from chaos.rehearsal.device.meeting import Meeting
from chaos.rehearsal.device.peer import Peer, awaited_ranks, gone_at, unsent
from chaos.rehearsal.device.presence import Presence
from chaos.rehearsal.device.rendezvous import Rendezvous

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIRECT = 1 << 63
"""Sequence numbers from here on belong to transfers between two ranks alone."""
_GROUP_SHIFT = 32
_GROUP_MASK = 0x7FFFFFFF
"""Above the count of a collective, a sequence number holds the mark of its group; 0 is the mark of all ranks."""
_ASKED = 1 << 31
"""In a sequence number: not a part of the collective, but the other ranks' contributions to it."""
_MESH = 16
"""Members of a group that send their arrays to every other member. In a larger group the first member sums for all."""


class Communicator:
    """All-reduce among ``ranks`` over Unix sockets in ``directory``, which only the run's owner can enter.

    With ``address``, this node's own on a network of the run, it is over TCP, and the files in ``directory`` say where
    the ranks listen.

    A peer must prove that it knows the run's ``secret``; a peer without proof is reported to ``on_refused`` and
    dropped. ``limit_seconds`` bounds each collective, ``join_seconds`` the joining (by default as long).
    ``deserted_seconds`` is how long a collective waits for a rank that has gone, where nobody is to stop it.
    """

    def __init__(
        self,
        rank: int,
        ranks: Sequence[int],
        directory: str,
        secret: bytes,
        *,
        limit_seconds: float,
        on_refused: Callable[[str], None],
        join_seconds: float | None = None,
        address: str | None = None,
        deserted_seconds: float | None = None,
    ) -> None:
        self.rank = rank
        self.ranks = sorted(ranks)
        self.link_error: str | None = None
        self._deserted_seconds = deserted_seconds
        self._limit_seconds = limit_seconds
        rendezvous = Rendezvous(rank, self.ranks, directory, secret, on_refused=on_refused, address=address)
        self._links = Links(rank, [other for other in self.ranks if other != rank])
        self._peers = self._links.peers
        self._meeting = Meeting(
            rank=rank,
            ranks=self.ranks,
            links=self._links,
            directory=directory,
            secret=secret,
            on_refused=on_refused,
            seconds=limit_seconds if join_seconds is None else join_seconds,
            rendezvous=rendezvous,
            presence=Presence(rank, directory) if len(self.ranks) > _MESH and address is None else None,
        )
        self._counts: dict[tuple[int, ...], int] = {}
        self._direct: dict[tuple[int, int], int] = {}

    def join(self) -> None:
        """Wait for all other ranks to join. Raises CommunicationTimeout naming the ranks that never came."""
        self._meeting.join()

    @property
    def port(self) -> int | None:
        """The TCP port on which the ranks after this one have called it; None over Unix sockets."""
        return self._meeting.rendezvous.port

    def all_reduce(self, array: NDArray[Any], group: Collection[int] | None = None) -> NDArray[Any]:
        """Sum ``array`` over the ranks of ``group`` (default: all), in the order of ranks.

        Blocks until each rank has contributed. A group has no connections of its own: it is stopped and rebuilt with
        the communicator. Raises ValueError for a group that this rank is not in, CommunicationAborted on an order to
        stop, CommunicationTimeout after the limit.
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
            self._links.offer(peers, sequence, payload)
            self._gather(peers, sequence, members)
            return self._sum(members, sequence, payload)
        if self.rank == members[0]:
            return self._sum_for_all(members, peers, sequence, payload)
        first = self._peers[members[0]]
        self._links.offer([first], sequence, payload)
        self._gather([first], sequence, members, f", which adds up for {rank_set(members)}")
        return first.take(sequence, payload).copy()

    def _sum_for_all(
        self, members: Sequence[int], peers: Sequence[Peer], sequence: int, payload: NDArray[Any]
    ) -> NDArray[Any]:
        """Sum the contributions of all members, and send the sum to each.

        A member may ask for the others' contributions first, before it sends its own.
        """
        request = sequence | _ASKED
        self._exchange(
            lambda: awaited_ranks([peer for peer in peers if request not in peer.arrived], sequence),
            lambda: gone_at([peer for peer in peers if request not in peer.arrived], sequence),
            meeting=(peers, members),
        )
        for asking in peers:
            if asking.arrived.pop(request, None) is not None:
                others = [peer.arrived[sequence] for peer in peers if peer is not asking]
                self._links.offer(
                    [asking], request, numpy.frombuffer(b"".join([payload.tobytes(), *others]), numpy.uint8)
                )
                self._gather([asking], sequence, members)
        total = self._sum(members, sequence, payload)
        self._links.offer(peers, sequence, total)
        self._exchange(lambda: unsent(peers))
        return total

    def _sum(self, members: Sequence[int], sequence: int, array: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of all contributions, added up in the order of ranks."""
        total = None
        for rank in members:
            part = array if rank == self.rank else self._peers[rank].take(sequence, array)
            total = part.copy() if total is None else total + part
        assert total is not None
        return total

    def _gather(self, peers: Sequence[Peer], sequence: int, members: Sequence[int], more: str = "") -> None:
        """Wait until each of these ranks has sent its part, and has taken the offered data."""

        def waits() -> str | None:
            waiting = awaited_ranks(peers, sequence)
            return None if waiting is None else waiting + more

        self._exchange(waits, lambda: gone_at(peers, sequence), meeting=(peers, members))

    def expected(self, like: NDArray[Any], group: Collection[int] | None = None) -> list[NDArray[Any]]:
        """Return the other ranks' contributions to their next all-reduce in ``group``, in the order of ranks.

        Waits for them all: they are in it already, or will be; the contributions stay for :meth:`all_reduce`. Only one
        rank may ask.
        """
        members = self.ranks if group is None else sorted(group)
        peers = [self._peers[rank] for rank in members if rank != self.rank]
        sequence = self._number(tuple(members), self._counts.get(tuple(members), 0) + 1)
        if len(members) > _MESH and self.rank != members[0]:
            request, first = sequence | _ASKED, self._peers[members[0]]
            self._links.offer([first], request, numpy.zeros(0, numpy.uint8))
            self._gather([first], request, members, f", which gathers from {rank_set(members)}")
            return list(numpy.frombuffer(first.arrived.pop(request), like.dtype).reshape(len(peers), *like.shape))
        self._exchange(lambda: awaited_ranks(peers, sequence), meeting=(peers, members))
        return [numpy.frombuffer(peer.arrived[sequence], like.dtype).reshape(like.shape) for peer in peers]

    def send(self, other: int, array: NDArray[Any]) -> None:
        """Send an array to one rank, which must call :meth:`receive`. Not while a collective is under way."""
        payload = numpy.asarray(array, order="C")
        sequence = self._next_direct(self.rank, other)
        peer = self._peers[other]
        self._links.offer([peer], sequence, payload)
        self._exchange(
            lambda: f"to send to rank {other}" if peer.outgoing else None,
            lambda: gone_at([peer], sequence),
            meeting=([peer], (self.rank, other)),
        )

    def receive(self, other: int, like: NDArray[Any]) -> NDArray[Any]:
        """Receive from one rank an array with the type and shape of ``like``."""
        sequence = self._next_direct(other, self.rank)
        peer = self._peers[other]
        self._exchange(
            lambda: None if sequence in peer.arrived else f"to receive from rank {other}",
            lambda: gone_at([peer], sequence),
            meeting=([peer], (other, self.rank)),
        )
        return peer.take(sequence, like)

    def _next_collective(self, members: tuple[int, ...]) -> int:
        """Return the number of the group's next collective.

        Each group counts its own collectives; all its members come to the same number.
        """
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
        self._links.close_peers()
        if self._meeting.presence is not None:
            self._meeting.presence.leave()
        self._links.close()

    def sever(self) -> None:
        """Take this rank's link down: nothing is sent or received any more, and no connection is closed.

        A collective then waits for its limit, as its peers do. ``link_error`` holds a device's report of it from here
        on. Only from the thread that calls the collectives.
        """
        self._links.sever()
        self.link_error = "error cqe: the link of the parameter plane is down"

    @property
    def aborted(self) -> bool:
        """Whether it was ordered to stop."""
        return self._links.aborted

    def abort(self) -> None:
        """End a blocked collective, and refuse further ones. May be called from any thread."""
        self._links.abort()

    def _exchange(
        self,
        waits: Callable[[], str | None],
        deserted: Callable[[], float | None] = lambda: None,
        *,
        meeting: tuple[Sequence[Peer], Sequence[int]] = ((), ()),
    ) -> None:
        """Serve all peers until ``waits`` returns None.

        ``deserted`` returns since when a rank has gone that can no longer contribute; None where none has. ``meeting``
        names the ranks that this needs a connection to, and the ranks of the exchange.
        """
        deadline = time.monotonic() + self._limit_seconds

        def left() -> float | None:
            """Return seconds to wait at most; None where the wait is over."""
            if self._links.aborted:
                raise CommunicationAborted("the collective was stopped by order")
            if (waiting := waits()) is None:
                return None
            left = deadline - time.monotonic()
            if self._deserted_seconds is not None and (since := deserted()) is not None:
                self._check_deserted(since, waiting)
                left = min(left, since + self._deserted_seconds - time.monotonic())
            if left <= 0:
                raise CommunicationTimeout(f"rank {self.rank} waited {in_words(self._limit_seconds)} {waiting}")
            return left

        self._meeting.reach(*meeting, left)
        while (seconds := left()) is not None:
            self._links.serve_ready(seconds)

    def _check_deserted(self, since: float, waiting: str) -> None:
        """Raise once a rank has been gone for too long: it sends nothing more, however busy the machine is."""
        assert self._deserted_seconds is not None
        if time.monotonic() - since >= self._deserted_seconds:
            raise CommunicationTimeout(
                f"rank {self.rank} waited {self._deserted_seconds:g} s {waiting}: a rank that it needs has gone"
            )
