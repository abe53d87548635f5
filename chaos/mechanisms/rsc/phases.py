"""The phases of a restart of all ranks (RSC), by the records of the launcher and the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.timestamp import Timestamp
from chaos.history.reader import History
from chaos.mechanisms.all_ranks_phases import (
    ENDED,
    STATE,
    all_ended,
    caught_up,
    first_healthy_end,
    last_of_ranks,
    of_new,
)
from chaos.plan.model import Plan


def phase_ends(plan: Plan, history: History, begin: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase after the fault at ``begin``, or why it is not known."""
    yield "detection", first_healthy_end(history, begin)
    yield "stop", all_ended(plan, history, begin)
    for name, (event, what) in (
        ("relaunch", ("agent.start", "the start of the new process")),
        ("load", STATE),
        ("compile", ("step.begin", "the first step of the new process")),
        ("first step", ENDED),
    ):
        yield name, last_of_ranks(plan, of_new(history, event, begin), what)
    yield "caught up", caught_up(plan, history, begin)
