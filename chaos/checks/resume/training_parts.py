"""The parts of a rank's training: from each beginning up to the next one that does not continue it."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, step_of
from chaos.evidence.recovery_windows import Window
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


def parts_of(plan: Plan, history: History) -> dict[int, list[list[Event]]]:
    """Return each rank's records, from each beginning of training up to the next one that is no continuation.

    A training that has come to its end is continued by the next one of the process: a job may train each epoch by
    itself.
    """
    parts: dict[int, list[list[Event]]] = {rank: [] for rank in range(plan.layout.ranks)}
    for event in history.select(attempt=TRAIN, writer="agent"):
        rank_parts = parts.get(-1 if event.rank is None else event.rank, [])
        if event.event == "train.begin" and not (rank_parts and _is_continued(rank_parts[-1], event)):
            rank_parts.append([])
        if rank_parts:
            rank_parts[-1].append(event)
    return parts


def _is_continued(part: list[Event], begin: Event) -> bool:
    """Return whether a training of the same process had ended at the step after which the next one begins."""
    ends = events_of(part, "train.end")
    if (
        not ends
        or ends[-1].pid != begin.pid
        or any(event.event.startswith("step.") for event in part[part.index(ends[-1]) :])
    ):
        return False
    trained = events_of(part, "step.end")
    return not trained or step_of(trained[-1]) == begin.data.get("initial_step")


def parts_that_count(parts: list[list[Event]], planned: list[Window], rank: int) -> list[list[Event]]:
    """Return the parts that count.

    Parts in which a new process only found out that it has to wait for its state do not.
    """
    kept: list[list[Event]] = []
    for number, part in enumerate(parts):
        window = next((span for span in planned if span.holds(part[0])), None)
        followed = window is not None and number + 1 < len(parts) and window.holds(parts[number + 1][0])
        if window is None or not followed or rank not in window.restarted or events_of(part, "step.end"):
            kept.append(part)
    return kept


def events_of(part: list[Event], event: str) -> list[Event]:
    """Return the events of that name in a part."""
    return [fact for fact in part if fact.event == event]
