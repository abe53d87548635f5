"""The steps of a process, thinned out where there are very many: a page has to stay small."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

Step = tuple[int, float, float]
"""A step: its number, and the seconds of its beginning and its end."""
Block = tuple[int, int, float, float]
"""Neighbouring steps as one: the first, the last, begin and end."""

FINE = 12
"""Steps that stay single at both ends of a process, and on both sides of whatever interrupts it."""
_LONG = 3.0
"""A step, or a pause between two, of this many medians interrupts a process."""


def blocks(steps: Sequence[Step], most: int, moments: Sequence[float] = ()) -> tuple[Block, ...]:
    """Return the steps in at most about ``most`` blocks.

    Steps at both ends stay single, and so do those beside ``moments`` (seconds, in order) and beside interruptions.
    """
    if len(steps) <= most:
        return tuple((number, number, begin, end) for number, begin, end in steps)
    single = _single(steps, moments, most // 2)
    length = max(2, -(-(len(steps) - len(single)) // max(1, most - len(single))))
    merged: list[Block] = []
    index = 0
    while index < len(steps):
        until = index + 1
        if index not in single:
            while until < len(steps) and until - index < length and until not in single:
                until += 1
        merged.append((steps[index][0], steps[until - 1][0], steps[index][1], steps[until - 1][2]))
        index = until
    return tuple(merged)


def _single(steps: Sequence[Step], moments: Sequence[float], most: int) -> set[int]:
    """Return the indices of the steps that stay single, at most about ``most``."""
    centres = [0, len(steps) - 1]
    ends = [end for _, _, end in steps]
    centres += [min(bisect_left(ends, moment), len(steps) - 1) for moment in moments]
    usual = median(end - begin for _, begin, end in steps)
    apart = median(after[1] - before[2] for before, after in pairwise(steps))
    centres += [
        index
        for index, (before, step) in enumerate(pairwise(steps), 1)
        if step[2] - step[1] > _LONG * usual or step[1] - before[2] > _LONG * max(apart, usual)
    ]
    single: set[int] = set()
    for centre in centres:
        if len(single) >= most:
            break
        single.update(range(max(0, centre - FINE), min(len(steps), centre + FINE + 1)))
    return single
