"""The time that the fault-free run took for the stretches that a recovery goes through again."""

from __future__ import annotations

from collections.abc import Collection

from chaos.evidence.facts import TRAIN, by_rank
from chaos.history.event import Event
from chaos.history.reader import History

_STRETCHES = {
    "relaunch": ("", "train.begin"),
    "compile": ("train.begin", "step.begin"),
    "first step": ("step.begin", "step.end"),
}
"""Phases that a fault-free start has too, each from one event of all ranks to another; "" is the launch itself."""

_IMPORT = "import"
"""The phase in which the ranks meet. A recovery with it starts the ranks alone, and not their launcher."""

_STRETCHES_OF_RANKS = {
    _IMPORT: ("agent.start", "group.ready"),
    "load": ("group.ready", "train.begin"),
    "first step": ("train.begin", "step.end"),
}
"""The same where the launcher stays, for phases that begin with the ranks."""


def fault_free_seconds(baseline: History | None, phases: Collection[str] = ()) -> dict[str, float]:
    """Return the seconds of the fault-free run's first start by phase, each from the last rank to the last rank.

    ``phases`` are those of the recovery that stands beside it.
    """
    launch = None if baseline is None else baseline.first("attempt.start", attempt=TRAIN)
    if baseline is None or launch is None:
        return {}
    seconds = {}
    for phase, (begin, end) in (_STRETCHES_OF_RANKS if _IMPORT in phases else _STRETCHES).items():
        since = launch if not begin else _last_of_first(baseline, begin)
        until = _last_of_first(baseline, end)
        if since is not None and until is not None and until.mono >= since.mono:
            seconds[phase] = (until.mono - since.mono) / 1e9
    return seconds


def _last_of_first(history: History, event: str) -> Event | None:
    """Return the first event of this name of the rank that is the last to have one."""
    firsts = [events[0] for events in by_rank(history, event, TRAIN).values()]
    return max(firsts, key=lambda first: first.mono, default=None)
