"""Part of check ``history``: the optimizer makes one update in as many steps as the plan says.

Steps are counted by the training loop, updates by the optimizer (``global_step``). Where one update takes several steps
and the plan takes each step for an update, steps of a later training are counted wrong, and no component is to blame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.stored import COUNTER
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, step_of
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.numbers import number_digests
from chaos.plan.model import Plan

_MOST_POINTS = 32
"""Most states of one rank that are examined; by then the number of steps is known."""

_MOST_RANKS = 4
"""Most ranks that are examined: all make their updates together."""

_MOST_STEPS = 1_000_000
"""States of later steps are not examined: the number behind a digest is found by trying."""


@dataclass(frozen=True)
class Observed:
    """From ``lowest`` to ``highest`` steps make one update, by the ranks' records.

    ``highest`` is None where no update was made. ``last`` is the last state that shows it, after ``updates`` updates.
    """

    lowest: int
    highest: int | None
    last: Event
    updates: int

    @property
    def steps_per_update(self) -> int | None:
        """The number of steps; None where several numbers fit."""
        return self.lowest if self.lowest == self.highest else None

    def fits(self, every: int) -> bool:
        """Return whether one update in this number of steps fits."""
        return self.lowest <= every and (self.highest is None or every <= self.highest)


def observe(history: History) -> Observed | None:
    """Return the steps in one update by the states of the first training, up to the first fault.

    None where no state shows the number of updates, or the states fit no number of steps: an optimizer may skip
    updates.
    """
    lowest, highest, last = 1, None, None
    for event, updates in _counts(history):
        step = step_of(event)
        lowest = max(lowest, step // (updates + 1) + 1)
        if updates:
            highest = min(step // updates, step if highest is None else highest)
        if highest is not None and lowest > highest:
            return None
        if last is None or step >= step_of(last[0]):
            last = event, updates
    return None if last is None else Observed(lowest, highest, *last)


def judge_updates(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Compare the plan with the fault-free run or, without one, with the run up to its first fault.

    Says nothing of plans of earlier versions, nor where each step makes an update or may have skipped it.
    """
    every = plan.training.steps_per_update
    if every is None:
        return
    expected = f"the optimizer makes an update once in {every} steps" if every > 1 else "every step makes an update"
    sources = ([] if artifacts.baseline is None else [(artifacts.baseline, "baseline/")]) + [(history, "")]
    observed, place = next(
        ((observation, place) for source, place in sources if (observation := observe(source))), (None, "")
    )
    if observed is None:
        if every > 1:
            collector.unknown(expected, "no rank has recorded how many updates its optimizer had made after which step")
        return
    where = (_line(plan), f"{place}{observed.last.source}")
    if not observed.fits(every):
        text = f"after step {step_of(observed.last)} it had made {observed.updates}"
        if every > 1:
            collector.fail(expected, text, *where, data=about(step=step_of(observed.last)))
        elif observed.updates:
            text = f"{text}: write job.steps_per_update: {observed.lowest}, to count steps and updates apart"
            collector.unknown(expected, text, *where, data=about(step=step_of(observed.last)))
    elif every > 1:
        collector.settle(expected, f"after step {step_of(observed.last)} it had made {observed.updates}", *where)


def _line(plan: Plan) -> str:
    return line_of(plan, "steps_per_update", "last_step")


def _counts(history: History) -> Iterator[tuple[Event, int]]:
    """Yield each state with its number of updates, if the number can be read from the digest."""
    first = min((event.mono for event in history.select("fault.injecting")), default=None)
    for rank in sorted({event.rank for event in history.select("digest", attempt=TRAIN) if event.rank is not None})[
        :_MOST_RANKS
    ]:
        begins = history.select("train.begin", attempt=TRAIN, rank=rank)
        again = begins[1].mono if len(begins) > 1 else None
        states = [
            event
            for event in history.select("digest", attempt=TRAIN, rank=rank)
            if (first is None or event.mono < first) and (again is None or event.mono < again)
        ]
        for event in states[:: -(-len(states) // _MOST_POINTS) or 1]:
            digest = _digest(event.data.get("parameters"))
            updates = None if digest is None or step_of(event) > _MOST_STEPS else _updates(digest, step_of(event))
            if updates is not None:
                yield event, updates


def _digest(parameters: object) -> str | None:
    if not isinstance(parameters, Mapping):
        return None
    names = [name for name in parameters if name == COUNTER or str(name).endswith(f".{COUNTER}")]
    return str(parameters[names[0]]) if len(names) == 1 else None


def _updates(digest: str, step: int) -> int | None:
    """Return the number that has this digest, among the possible numbers of updates after a step."""
    return next((updates for updates in _candidates(step) if digest in number_digests(updates)), None)


def _candidates(step: int) -> Iterable[int]:
    """Yield ``step``, ``step // 2``, ``step // 3`` and so on, each once, then 0."""
    number = step
    while number:
        yield number
        number = step // (step // number + 1)
    yield 0
