"""The noise of a job: how far each two of its fault-free runs are apart.

For each quantity the largest difference of a pair of runs counts, over all steps, ranks and parameters. The check
``loss`` fails a run by the largest difference too, so the number of comparisons within a run needs no correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape
from itertools import combinations
from typing import NamedTuple

from chaos.evidence.baseline import differing, loss_of
from chaos.evidence.checkpoints.parameters import is_step_counter, slot_prefix
from chaos.evidence.facts import TRAIN, digests
from chaos.evidence.tolerances.losses import mean_begins, mean_difference, relative_difference
from chaos.evidence.tolerances.samples import EXACT, difference, read_sample, samples_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


class Quantity(NamedTuple):
    """A compared quantity. ``pattern`` fits names of parameters; it is empty for the losses."""

    part: str
    pattern: str = ""


LOSS = Quantity("loss")
MEAN = Quantity("mean")


class Unequal(NamedTuple):
    """The first value in which two runs differ. ``what`` is ``start``, ``batch``, ``loss`` or ``state``."""

    step: int
    what: str
    rank: int
    name: str
    size: float | None


@dataclass(frozen=True)
class Recorded:
    """The record of one fault-free run: each rank's first state, and its digests by step.

    ``job`` says with which job it was made; it is empty where the run does not tell.
    """

    name: str
    starts: Mapping[int, Event]
    digests: Mapping[int, Mapping[int, Event]]
    job: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Noise:
    """The differences of all pairs of runs.

    ``largest`` has the largest difference of each pair by quantity, and 0 where a pair is equal. ``comparisons`` is the
    number of values that are compared in one pair. ``unsampled`` are parameters that differ and have no sample.
    ``batches_differ``: at some step, however late. ``means`` has the mean loss after the recovery in each run, by rank.
    """

    runs: int
    largest: dict[Quantity, list[float]] = field(default_factory=dict)
    first: Unequal | None = None
    comparisons: int = 0
    unsampled: set[str] = field(default_factory=set)
    batches_differ: bool = False
    means: dict[int, list[float]] = field(default_factory=dict)

    @property
    def deterministic(self) -> bool:
        """Whether all runs are equal bit for bit."""
        return self.first is None


def recorded(name: str, history: History, job: Mapping[str, str]) -> Recorded:
    """Return the record of a run's first launch, of ``job``."""
    starts: dict[int, Event] = {}
    for event in history.select("initial", attempt=TRAIN):
        if event.rank is not None:
            starts.setdefault(event.rank, event)
    return Recorded(name, starts, digests(history, TRAIN), job)


def measure(plan: Plan, runs: Sequence[Recorded]) -> Noise:
    """Compare each two runs. ``plan`` is the plan of the scenario with its faults."""
    noise = Noise(len(runs))
    for rank in filter(plan.layout.has_loss, range(plan.layout.ranks)):
        losses = [_losses(run.digests.get(rank, {}), mean_begins(plan)) for run in runs]
        if all(losses):
            noise.means[rank] = [math.fsum(by_step.values()) / len(by_step) for by_step in losses]
    pairs = list(combinations(runs, 2))
    for number, (first, second) in enumerate(pairs):
        for quantity, value in _largest(plan, first, second, noise).items():
            noise.largest.setdefault(quantity, [0.0] * len(pairs))[number] = value
        unequal = list(_unequal(plan, first, second))
        noise.batches_differ |= any(value.what == "batch" for value in unequal)
        earliest = min(unequal, default=None)
        if earliest is not None and (noise.first is None or earliest < noise.first):
            noise.first = earliest
    return noise


def pattern_of(name: str) -> str:
    """Return the pattern that stands for a parameter: all of its role, the optimizer's or the weights' own.

    ``moments.layer1.weight`` becomes ``moments.*weight``, ``layer1.weight`` becomes ``*weight``.
    """
    prefix = slot_prefix(name)
    last = escape(name.rpartition(".")[2])
    return f"{escape(prefix)}*{last}"


def _pairs(plan: Plan, first: Recorded, second: Recorded) -> Iterator[tuple[int, int, Event, Event]]:
    for rank in range(plan.layout.ranks):
        theirs = second.digests.get(rank, {})
        for step, event in first.digests.get(rank, {}).items():
            if step in theirs:
                yield rank, step, event, theirs[step]


def _unequal(plan: Plan, first: Recorded, second: Recorded) -> Iterator[Unequal]:
    """Yield the differences of two runs, in no order."""
    for rank, start in first.starts.items():
        if rank in second.starts:
            for name in differing(start.data.get("parameters"), second.starts[rank].data.get("parameters")):
                yield Unequal(0, "start", rank, name, None)
    for rank, step, ours, theirs in _pairs(plan, first, second):
        if ours.data.get("batch") != theirs.data.get("batch"):
            yield Unequal(step, "batch", rank, "", None)
        our_loss, their_loss = loss_of(ours), loss_of(theirs)
        if our_loss is None or their_loss is None or not plan.layout.has_loss(rank):
            pass
        elif our_loss.hex() != their_loss.hex():
            yield Unequal(step, "loss", rank, "", relative_difference(our_loss, their_loss))
        for name in differing(ours.data.get("parameters"), theirs.data.get("parameters")):
            yield Unequal(step, "state", rank, name, None)


def _largest(plan: Plan, first: Recorded, second: Recorded, noise: Noise) -> dict[Quantity, float]:
    largest: dict[Quantity, float] = {}

    def note(quantity: Quantity, value: float) -> None:
        if value > 0:
            largest[quantity] = max(value, largest.get(quantity, 0.0))

    comparisons = 0
    for rank, _, ours, theirs in _pairs(plan, first, second):
        our_loss, their_loss = loss_of(ours), loss_of(theirs)
        if plan.layout.has_loss(rank) and our_loss is not None and their_loss is not None:
            comparisons += 1
            note(LOSS, _both_ways(our_loss, their_loss))
        comparisons += 2 * len(ours.data.get("parameters") or {})
        for name, norm, sample in _apart(ours, theirs, noise):
            note(Quantity("norm", pattern_of(name)), norm)
            note(Quantity("sample", pattern_of(name)), sample)
    for rank in filter(plan.layout.has_loss, range(plan.layout.ranks)):
        means = [_losses(run.digests.get(rank, {}), mean_begins(plan)) for run in (first, second)]
        for ours_first in (means, means[::-1]):
            note(MEAN, mean_difference(*ours_first) or 0.0)
    noise.comparisons = max(noise.comparisons, comparisons)
    return largest


def _apart(ours: Event, theirs: Event, noise: Noise) -> Iterator[tuple[str, float, float]]:
    """Yield norm and sample of each parameter that differs; either run may be the later baseline."""
    for name in differing(ours.data.get("parameters"), theirs.data.get("parameters")):
        texts = [samples_of(event).get(name) for event in (ours, theirs)]
        if texts == [EXACT, EXACT] and not is_step_counter(name):
            yield name, math.inf, math.inf  # no limit can be stated
            continue
        first, second = map(read_sample, texts)
        there = None if first is None or second is None else difference(first, second)
        back = None if first is None or second is None else difference(second, first)
        if there is None or back is None or is_step_counter(name):
            noise.unsampled.add(name)
        else:
            yield name, max(there.norm, back.norm), max(there.sample, back.sample)


def _both_ways(first: float, second: float) -> float:
    return max(relative_difference(first, second), relative_difference(second, first))


def _losses(events: Mapping[int, Event], begins: int) -> dict[int, float]:
    return {step: loss for step, event in events.items() if step >= begins and (loss := loss_of(event)) is not None}
