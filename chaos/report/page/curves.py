"""Loss, global norm and step time by step: the run's and those of its fault-free run."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.facts import RESUME, TRAIN
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.logs.losses.loss_columns import LossColumns
from chaos.plan.model import Plan
from chaos.report.page.model import Curves, CurveSet, Difference, StepMark
from chaos.report.page.moments import step_in
from chaos.report.page.planned_faults import planned_text, step_of_fault

Values = dict[int, float]
"""A value by step."""


def curves(plan: Plan, history: History, artifacts: Artifacts) -> CurveSet:
    """Return the curves of both runs over all steps that either has recorded.

    Loss and norm are those of the first rank whose loss is valid; a step that was trained again counts with its last
    training. Where its agent has recorded none, its own log tells the loss. The step time is the longest of all ranks.
    """
    rank, baseline = 0 if plan.layout.loss_ranks is None else plan.layout.loss_ranks[0], artifacts.baseline
    recorded = _values(history, (TRAIN, RESUME), rank)
    other = None if baseline is None else _values(baseline, (TRAIN,), rank)
    by_log = not recorded[0]
    if by_log:
        recorded[0].update(_logged([*artifacts.losses(TRAIN, rank), *artifacts.losses(RESUME, rank)]))
        if other is not None:
            other[0].update(_logged(artifacts.baseline_losses(rank)))
    steps = sorted({step for values in (*recorded, *(other or ())) for step in values})
    return CurveSet(
        tuple(steps),
        _in_order(recorded, steps),
        None if other is None else _in_order(other, steps),
        tuple(_marks(plan, history)),
        None if other is None else _first_difference(recorded, other, steps),
        0 if other is None else _compared(recorded, other),
        f"{'The loss is that of the log' if by_log else 'Loss and norm are those'} of rank {rank}. "
        "The step time is the slowest rank's.",
    )


def _values(history: History, attempts: Iterable[str], rank: int) -> tuple[Values, Values, Values]:
    loss: Values = {}
    norm: Values = {}
    seconds: Values = {}
    for attempt in attempts:
        for event in history.select("digest", attempt=attempt, rank=rank):
            if (step := step_in(event)) is not None:
                gradients = event.data.get("gradients")
                _put(loss, step, event.data.get("loss"))
                _put(norm, step, gradients.get("norm") if isinstance(gradients, dict) else None)
        again: Values = {}
        _time_steps(history, attempt, again)
        seconds |= again
    return loss, norm, seconds


def _logged(logs: list[tuple[str, LossColumns]]) -> Values:
    """Return the losses that a rank has printed, those of its later logs and lines last."""
    values: Values = {}
    for _, columns in logs:
        steps, losses = columns.step[columns.present], columns.loss[columns.present]
        values.update(zip(steps.tolist(), losses.tolist(), strict=True))
    return values


def _put(values: Values, step: int, text: object) -> None:
    if not isinstance(text, str):
        return
    try:
        value = float.fromhex(text)
    except (ValueError, OverflowError):
        return
    values[step] = value


def _time_steps(history: History, attempt: str, seconds: Values) -> None:
    begun: dict[tuple[int | None, int | None], Event] = {}
    ends = history.select("step.begin", attempt=attempt) + history.select("step.end", attempt=attempt)
    for event in sorted(ends, key=lambda event: event.mono):
        process = event.rank, event.pid
        if event.event == "step.begin":
            begun[process] = event
            continue
        start, step = begun.pop(process, None), step_in(event)
        if start is not None and step is not None and step == step_in(start):
            seconds[step] = max(seconds.get(step, 0.0), (event.mono - start.mono) / 1e9)


def _in_order(values: tuple[Values, Values, Values], steps: list[int]) -> Curves:
    loss, norm, seconds = (tuple(series.get(step) for step in steps) for series in values)
    return Curves(loss, norm, seconds)


def _marks(plan: Plan, history: History) -> Iterable[StepMark]:
    for fault in plan.faults:
        step = step_of_fault(fault, history)
        if step is not None:
            yield StepMark(step, planned_text(fault))


def _compared(recorded: tuple[Values, Values, Values], other: tuple[Values, Values, Values]) -> int:
    """Return the number of steps in which the loss or the norm of both runs is known."""
    return len((recorded[0].keys() & other[0].keys()) | (recorded[1].keys() & other[1].keys()))


def _first_difference(
    recorded: tuple[Values, Values, Values], other: tuple[Values, Values, Values], steps: list[int]
) -> Difference | None:
    """Return the first step whose loss or norm is not the fault-free run's, bit for bit."""
    for step in steps:
        for name, ours, theirs in (("loss", recorded[0], other[0]), ("norm", recorded[1], other[1])):
            if step in ours and step in theirs and ours[step].hex() != theirs[step].hex():
                return Difference(step, name)
    return None
