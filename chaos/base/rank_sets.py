"""Sets of ranks in words: ``rank 2``, ``ranks 0-3,8 (5 of 128)``. The text stays short for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

_SPANS = 8
"""Number of spans of neighbours that are written out."""
_COUNTED = 6
"""Smallest number of ranks that is written with its count."""

K = TypeVar("K")


def spans(ranks: Iterable[int]) -> str:
    """Return the numbers alone, neighbours as a span: ``0-3,8``. Of very many spans the first ones and the last."""
    pairs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if pairs and rank == pairs[-1][1] + 1:
            pairs[-1][1] = rank
        else:
            pairs.append([rank, rank])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in pairs]
    return ",".join(texts if len(texts) <= _SPANS else [*texts[: _SPANS - 1], "…", texts[-1]])


def named(ranks: Iterable[int]) -> str:
    """Return ``no rank``, ``rank 2``, ``ranks 0-3,8``: the ranks without their number."""
    numbers = set(ranks)
    if len(numbers) < 2:
        return f"rank {min(numbers)}" if numbers else "no rank"
    return f"ranks {spans(numbers)}"


def rank_set(ranks: Iterable[int], of: int | None = None) -> str:
    """Return ``no rank``, ``rank 2``, ``ranks 0-3,8 (5 of 128)``, ``ranks 0-127 (128 in all)``.

    ``of`` is the number of ranks in all.
    """
    numbers = set(ranks)
    if len(numbers) < 2:
        return named(numbers)
    if of is not None:
        count = f" ({len(numbers):,} of {of:,})" if len(numbers) != of else ""
    else:
        count = f" ({len(numbers):,} in all)" if len(numbers) > _COUNTED else ""
    return f"{named(numbers)}{count}"


def by_word(words: Mapping[int, K]) -> dict[K, list[int]]:
    """Return each distinct word once, with the ranks that have it, in the order of the first of them."""
    ranks: dict[K, list[int]] = {}
    for rank in sorted(words):
        ranks.setdefault(words[rank], []).append(rank)
    return ranks
