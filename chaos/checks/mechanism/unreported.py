"""Part of check ``mechanism``: updates that no rank reports to the SDK, though the ranks have made them.

A step whose gradients overflow makes no update, and no rank reports it. A step that changes a moment of the optimizer
makes one; the scale of a loss changes in an overflow, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from chaos.evidence.checkpoints.parameters import is_slot, is_step_counter
from chaos.evidence.facts import by_rank, step_of
from chaos.evidence.protection import Process, steps_before
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import NEEDS

SAVING_HANDLER = "save_ckpt"
"""The handler of a rank whose updates the SDK counts: to save a checkpoint it must know the last one."""


def updated_steps(history: History, attempt: str) -> Mapping[int, frozenset[int]]:
    """Return the steps of each rank behind which a moment of its optimizer is recorded to differ from before."""
    return {
        rank: frozenset(step_of(after) for before, after in pairwise(events) if _is_next(before, after))
        for rank, events in by_rank(history, "digest", attempt).items()
    }


def reports_each_step(process: Process, kind: str, until: int) -> bool:
    """Return whether this report followed each step that the process ended before a time, but for the last one."""
    followed = [kind in reports for _, reports in steps_before(process, until)[:-1]]
    return bool(followed) and all(followed)


def owes_reports(plan: Plan, process: Process, until: int) -> bool:
    """Return whether a process must have reported updates before a time: a planned mechanism rests on its reports."""
    needed = any(recovery.mechanism in NEEDS["MindIO"] for recovery in plan.response.recoveries)
    saves = SAVING_HANDLER in process.handlers_before(until)
    return needed and saves and process.has_connected and len(steps_before(process, until)) > 1


def _is_next(before: Event, after: Event) -> bool:
    return (before.pid, step_of(before) + 1) == (after.pid, step_of(after)) and _moments(before) != _moments(after)


def _moments(digest: Event) -> dict[str, object]:
    parameters = digest.data.get("parameters")
    recorded = parameters if isinstance(parameters, dict) else {}
    return {name: value for name, value in recorded.items() if is_slot(name) and not is_step_counter(name)}
