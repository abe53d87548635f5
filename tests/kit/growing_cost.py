"""How the cost of a piece of work grows with its input, whatever the machine does beside it.

Seconds say as much of the machine as of the work: a neighbour on the same core doubles even the processor's time.
How many times as much a longer input takes is nearly the same on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

TIMES = 16
"""How many times longer the longer input is to be made."""

MOST_GROWTH = 64
"""Work in proportion to its input grows 16 times, work in proportion to the square of it 256 times."""

_Input = TypeVar("_Input")


def processor_seconds(work: Callable[[_Input], object], given: _Input) -> float:
    """Do the work once and say what it took."""
    began = time.process_time()
    work(given)
    return time.process_time() - began


def growth(work: Callable[[_Input], object], short: _Input, long: _Input) -> float:
    """Say how many times as much ``work`` takes for ``long`` as for ``short``.

    The short input is worked on as many times as the other one is longer, so that both take as long where the work is
    in proportion to its input: what disturbs one for some time disturbs the other alike. Where that says too much both
    are measured again: a disturbance of the long one alone makes the growth larger, never smaller.
    """
    ratio = _growth(work, short, long)
    for _ in range(2):
        if ratio > MOST_GROWTH:
            ratio = min(ratio, _growth(work, short, long))
    return ratio


def _growth(work: Callable[[_Input], object], short: _Input, long: _Input) -> float:
    shorts = sum(processor_seconds(work, short) for _ in range(TIMES))
    return TIMES * processor_seconds(work, long) / shorts
