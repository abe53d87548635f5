"""The other end of a rank's connection in a communicator, and the frames that go over it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from chaos.base.rank_sets import rank_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FRAME = struct.Struct("<4sIQQ")
_MAGIC = b"CHSR"
_COUNT = (1 << 31) - 1
"""Mask of the part of a sequence number that counts the collectives of a group."""


class Peer:
    """Rank ``rank`` as another rank sees it: the received data, by sequence number, and the data to be sent to it.

    Its ``socket`` is there once it is ``met``.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.met = False
        self.incoming = bytearray()
        self.arrived: dict[int, bytes] = {}
        self.outgoing: list[memoryview] = []
        self.disconnected = False
        self.gone_at = 0.0

    def meet(self, connection: socket.socket) -> None:
        """Use this connection to the peer, the first one or one made anew. Unsent data stays."""
        self.socket = connection
        self.met, self.disconnected, self.gone_at = True, False, 0.0
        self.incoming, self.arrived = bytearray(), {}

    def take_frames(self) -> None:
        """Move complete frames out of the raw input. Raises RuntimeError on a frame that no peer would send."""
        while len(self.incoming) >= _FRAME.size:
            magic, _, sequence, length = _FRAME.unpack_from(self.incoming)
            if magic != _MAGIC:
                raise RuntimeError(f"rank {self.rank} sent a frame that is not of this communicator")
            end = _FRAME.size + length
            if len(self.incoming) < end:
                return
            self.arrived[sequence] = bytes(self.incoming[_FRAME.size : end])
            del self.incoming[:end]

    def take(self, sequence: int, like: NDArray[Any]) -> NDArray[Any]:
        """Return the data received with this number, as an array with the type and shape of ``like``."""
        return numpy.frombuffer(self.arrived.pop(sequence), like.dtype).reshape(like.shape)


def frame(rank: int, sequence: int, payload: NDArray[Any]) -> list[memoryview]:
    """Return a frame of ``rank`` that holds this array, in pieces to be sent one after the other."""
    header = _FRAME.pack(_MAGIC, rank, sequence, payload.nbytes)
    return [memoryview(header), memoryview(payload.reshape(-1).view(numpy.uint8).data)]


def gone_at(peers: Sequence[Peer], sequence: int) -> float | None:
    """Return since when a rank has gone that has not contributed to this collective.

    None where none has.
    """
    return min((peer.gone_at for peer in peers if peer.gone_at and sequence not in peer.arrived), default=None)


def unsent(peers: Sequence[Peer]) -> str | None:
    """Return the ranks that have not taken the offered data, in words; None when all have."""
    ranks = [peer.rank for peer in peers if peer.outgoing]
    return f"to send to {rank_set(ranks)}" if ranks else None


def awaited_ranks(peers: Sequence[Peer], sequence: int) -> str | None:
    """Return the ranks that a collective still waits for, in words; None when it is over."""
    ranks = [peer.rank for peer in peers if sequence not in peer.arrived]
    if not ranks and not any(peer.outgoing for peer in peers):
        return None
    return f"in all-reduce {sequence & _COUNT} for {rank_set(ranks)}"
