"""The mutual proof of two ranks that meet: both know the run's secret, before either accepts the other as a rank.

The caller sends its rank and a number that it uses once; the listener answers with a number of its own and its proof
over both; then the caller proves itself over the same. A proof overheard at one meeting is worthless at the next, and
nobody can listen in place of a rank. The secret itself is never sent.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from collections.abc import Collection

_NONCE_BYTES = 16
_HELLO = struct.Struct(f"<II{_NONCE_BYTES}s")
_CHALLENGE = struct.Struct(f"<{_NONCE_BYTES}s32s")
_PROOF_BYTES = 32


class Unproven(Exception):
    """The other side is not the rank that it claims to be. The text does not repeat the other side's words."""


class Caller:
    """The side of rank ``rank`` of ``size``, which calls rank ``other``: ``hello`` is its first word.

    ``wants`` is the number of bytes to hear next, 0 at the end; ``met`` is then the other rank.
    """

    def __init__(self, secret: bytes, rank: int, other: int, size: int) -> None:
        self._secret = secret
        self._words = (other, rank, size)
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self.hello = _HELLO.pack(rank, size, self._nonce)
        self.wants = _CHALLENGE.size
        self.met: int | None = None

    def hear(self, challenge: bytes) -> bytes:
        """Return the answer to the listener. Raises Unproven when it is no listener of this run."""
        theirs, proof = _CHALLENGE.unpack(challenge)
        numbers = self._nonce + theirs
        if not hmac.compare_digest(proof, _proof(self._secret, "listener", self._words, numbers)):
            raise Unproven(f"who listens in place of rank {self._words[0]} did not prove it; left")
        self.wants, self.met = 0, self._words[0]
        return _proof(self._secret, "caller", self._words, numbers)


class Listener:
    """The side of rank ``rank`` among ``ranks``, which is called. ``wants`` and ``met`` are as of a caller."""

    def __init__(self, secret: bytes, rank: int, ranks: Collection[int]) -> None:
        self._secret = secret
        self._rank = rank
        self._ranks = ranks
        self._words = (rank, rank, 0)
        self._numbers = b""
        self.wants = _HELLO.size
        self.met: int | None = None

    @property
    def introduced(self) -> bool:
        """Whether the caller has introduced itself, and only its proof is missing."""
        return bool(self._numbers)

    def hear(self, words: bytes) -> bytes:
        """Return the answer to the caller. Raises Unproven when it is no other rank of this run."""
        if self.introduced:
            if not hmac.compare_digest(words, _proof(self._secret, "caller", self._words, self._numbers)):
                raise self.unproven(b"")
            self.wants, self.met = 0, self._words[1]
            return b""
        caller, size, theirs = _HELLO.unpack(words)
        if caller not in self._ranks or caller == self._rank or size != len(self._ranks):
            raise self.unproven(words)
        ours = secrets.token_bytes(_NONCE_BYTES)
        self._words, self._numbers, self.wants = (self._rank, caller, size), theirs + ours, _PROOF_BYTES
        return _CHALLENGE.pack(ours, _proof(self._secret, "listener", self._words, self._numbers))

    def unproven(self, words: bytes) -> Unproven:
        """Return the error for a caller that has sent no more than this since its last message."""
        rank, size, _ = (*self._words[1:], b"") if self.introduced else _HELLO.unpack(words.ljust(_HELLO.size, b"\0"))
        return Unproven(f"a connection that says it is rank {rank} of {size} did not prove it; dropped")


def _proof(secret: bytes, side: str, words: tuple[int, int, int], numbers: bytes) -> bytes:
    content = f"communicator {side} {' '.join(map(str, words))} ".encode() + numbers
    return hmac.new(secret, content, "sha256").digest()
