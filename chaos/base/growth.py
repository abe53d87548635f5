"""Limits that grow with the number of ranks: more ranks share the same cores, files and one controller."""

from __future__ import annotations

FEW = 16
"""Number of ranks up to which a limit is the same as for one rank."""


class Growing(float):
    """Seconds: ``seconds`` for few ranks, and ``each`` more for every one of ``ranks`` beyond them.

    Such a limit can show its calculation (:func:`in_words`).
    """

    seconds: float
    each: float
    more: int

    def __new__(cls, seconds: float, each: float, ranks: int) -> Growing:
        more = max(0, ranks - FEW)
        limit = super().__new__(cls, seconds + each * more)
        limit.seconds, limit.each, limit.more = seconds, each, more
        return limit

    def __reduce__(self) -> tuple[type[Growing], tuple[float, float, int]]:
        return Growing, (self.seconds, self.each, self.more + FEW)


def in_words(limit: float) -> str:
    """Return ``60 s``; for a limit that has grown ``172 s (60 s, and 1 s for each of the 112 ranks beyond 16)``."""
    text = f"{limit:g} s"
    if not isinstance(limit, Growing) or not limit.each or not limit.more:
        return text
    ranks = "the one rank" if limit.more == 1 else f"each of the {limit.more:,} ranks"
    return f"{text} ({limit.seconds:g} s, and {limit.each:g} s for {ranks} beyond {FEW})"
