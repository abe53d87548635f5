"""Whether an act began only after another had ended everywhere, whatever the error of the hosts' clocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chaos.history.event import Event

UNDECIDED = ": the clocks of their hosts do not tell"
"""Ends a sentence that begins with *whether*."""


def suspicious(begun: Sequence[Event], ended: Sequence[Event]) -> tuple[Event, Event, bool] | None:
    """Return a pair of which the first began before the second had ended, and whether this is sure; None without one.

    A sure pair takes precedence over a pair that two hosts' clocks leave open. On one clock only the outermost events
    can be a pair.
    """
    clocks = sorted({event.clock for event in (*begun, *ended)})
    firsts = _outermost(begun, clocks, min)
    lasts = _outermost(ended, clocks, max)
    pairs = [(first, last) for first in firsts for last in lasts if first.maybe_before(last)]
    sure = [pair for pair in pairs if pair[0].surely_before(pair[1])]
    if not pairs:
        return None
    first, last = max(sure or pairs, key=lambda pair: pair[1].mono - pair[0].mono)
    return first, last, bool(sure)


def _outermost(events: Sequence[Event], clocks: list[str], pick: Callable[..., Event]) -> list[Event]:
    """Return the first or the last event of each clock."""
    by_clock = ([event for event in events if event.clock == clock] for clock in clocks)
    return [pick(group, key=lambda event: event.mono) for group in by_clock if group]
