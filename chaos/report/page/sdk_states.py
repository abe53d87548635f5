"""The states of the SDK's controller, from its log, on the time of the run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.clock import ClockError, LogClock, log_clock
from chaos.evidence.facts import TRAIN
from chaos.evidence.mechanisms_seen import STATE
from chaos.evidence.text import readable
from chaos.history.reader import History
from chaos.report.page.model import SdkState
from chaos.report.page.moments import Clock

_MOST = 2_000
"""States on a page."""


def sdk_states(history: History, artifacts: Artifacts, clock: Clock) -> tuple[SdkState, ...]:
    """Return the states of the launch that the faults hit, each up to the next one.

    Only that launch's logs can be placed on the history's clock. There are none where they cannot.
    """
    try:
        changes = sorted(_changes(artifacts, log_clock(history, artifacts)))[:_MOST]
    except ClockError:
        return ()
    if not changes:
        return ()
    ends = [event.mono for event in history.select(attempt=TRAIN) if event.rank is not None]
    last = max([*ends, changes[-1][0]])
    return tuple(
        SdkState(name, clock.seconds(begin), clock.seconds(end), f"{name} ({place})")
        for (begin, name, place), (end, _, _) in pairwise([*changes, (last, "", "")])
    )


def _changes(artifacts: Artifacts, placed: LogClock) -> Iterator[tuple[int, str, str]]:
    """Yield each change of the controller's state: when, to what, and its place in the log."""
    for event in artifacts.sdk_events(TRAIN):
        if event.kind == STATE and event.wall_ns is not None:
            yield placed.mono(event), readable(str(event.fields.get("state"))), event.source
