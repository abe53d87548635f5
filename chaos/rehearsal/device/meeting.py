"""The meeting of ranks in a communicator: all of them when they join, or two when they need each other first."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy

from chaos.base.growth import in_words
from chaos.base.rank_sets import rank_set
from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.links import Links
from chaos.rehearsal.device.peer import Peer
from chaos.rehearsal.device.presence import Presence
from chaos.rehearsal.device.rendezvous import Rendezvous

_ALL_HERE = 0
"""Sequence number of the first rank's announcement that all of many ranks have joined; a collective's is never 0."""
_LOOK_SECONDS = 1.0
"""How often a rank that waits for others checks whether their processes have ended."""


@dataclass(frozen=True)
class Meeting:
    """Brings ``rank`` together with the others of ``ranks``, whose connections ``links`` holds.

    ``presence`` shows which of very many ranks have come. It is None where each has a connection to every other one,
    which shows whether that one has gone.
    """

    rank: int
    ranks: Sequence[int]
    links: Links
    directory: str
    secret: bytes
    on_refused: Callable[[str], None]
    seconds: float
    rendezvous: Rendezvous
    presence: Presence | None

    def join(self) -> None:
        """Wait for all other ranks to join. Raises CommunicationTimeout naming the ranks that never came."""
        deadline = time.monotonic() + self.seconds
        if self.presence is not None:
            self.presence.enter()
            if self.rank != self.ranks[0]:
                self._join_at(self.links.peers[self.ranks[0]], deadline)
                return
        self._meet(self.rendezvous, lambda missing: self._check_join(deadline, missing))
        if self.presence is not None:
            self._say_all_here(deadline)

    def _say_all_here(self, deadline: float) -> None:
        self.links.offer(list(self.links.peers.values()), _ALL_HERE, numpy.zeros(0, numpy.uint8))
        while waiting := [peer.rank for peer in self.links.peers.values() if peer.outgoing]:
            self._check_join(deadline, waiting)
            self.links.serve_ready(max(0.0, deadline - time.monotonic()))

    def _join_at(self, first: Peer, deadline: float) -> None:
        """Meet the first rank, again where it hangs up, until it announces that all have come."""
        while _ALL_HERE not in first.arrived:
            self._check_join(deadline, [first.rank])
            if not first.met or first.disconnected:
                self._meet(self.rendezvous, lambda missing: self._check_join(deadline, missing), [first.rank])
            self.links.serve_ready(max(0.0, deadline - time.monotonic()))
        del first.arrived[_ALL_HERE]

    def _meet(
        self,
        rendezvous: Rendezvous,
        still: Callable[[Collection[int]], Collection[int]],
        others: Collection[int] | None = None,
    ) -> None:
        for rank, connection in rendezvous.meet(still, others):
            self.links.connect(self.links.peers[rank], connection)

    def reach(self, peers: Sequence[Peer], members: Sequence[int], still: Callable[[], object]) -> None:
        """Meet those of these peers that have not been met; each is in the same collective, or comes to it.

        ``still`` is called in between; any error that it raises ends the meeting.
        """
        unmet = [peer.rank for peer in peers if not peer.met and not peer.disconnected]
        if not unmet:
            return
        next_look = 0.0

        def ended(missing: Collection[int]) -> Collection[int]:
            nonlocal next_look
            still()
            self.links.serve_ready(0.0)
            if time.monotonic() < next_look:
                return ()
            next_look = time.monotonic() + _LOOK_SECONDS
            return self._lose_ended(missing)

        door = hashlib.sha256(repr(tuple(members)).encode()).hexdigest()[:4]  # no longer than "rank": paths are limited
        place = Rendezvous(self.rank, self.ranks, self.directory, self.secret, on_refused=self.on_refused, door=door)
        self._meet(place, ended, unmet)

    def _lose_ended(self, ranks: Collection[int]) -> list[int]:
        """Return the ranks that joined and whose processes have ended before they met; they are lost from here on."""
        assert self.presence is not None
        ended = [rank for rank in ranks if not self.presence.is_here(rank)]
        for rank in ended:
            self.links.lose(self.links.peers[rank])
        return ended

    def _check_join(self, deadline: float, missing: Collection[int]) -> Collection[int]:
        """Raise where joining is over; until then return no rank as given up."""
        if self.links.aborted:
            raise CommunicationAborted("the join was stopped by order")
        if time.monotonic() > deadline:
            if self.presence is not None and self.rank != self.ranks[0]:
                missing = [rank for rank in self.links.peers if not self.presence.has_come(rank)] or missing
            raise CommunicationTimeout(
                f"rank {self.rank} waited {in_words(self.seconds)} for {rank_set(missing, len(self.ranks))} "
                "to join the communicator"
            )
        return ()
