"""Defects that the limits of a job see. They are of known size, taken from the fault-free runs themselves.

A state that is a step off stands for a skipped or repeated step. Moments that were not restored lack, one step later,
what an optimizer keeps of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import permutations

from chaos.calibration.noise import Quantity, Recorded
from chaos.calibration.tolerance import Tolerance
from chaos.evidence.baseline import differing, loss_of
from chaos.evidence.checkpoints.parameters import is_slot, is_step_counter
from chaos.evidence.tolerances.losses import mean_begins, relative_difference
from chaos.evidence.tolerances.samples import difference, read_sample, samples_of
from chaos.history.event import Event
from chaos.plan.model import Plan

_DECAY = 0.9
"""The least share of its moments that an optimizer keeps in a step, as usual: momentum, and ``beta1`` of Adam."""


@dataclass(frozen=True)
class Sight:
    """How many states that are a step off the limits see, and by what lost moments are seen."""

    shifted: int
    seen_shifted: int
    moments: tuple[str, ...]
    has_moments: bool
    loss: float | None

    def sentences(self) -> Iterator[str]:
        """Yield what the limits see, and what they do not."""
        if self.shifted:
            yield f"a state that is one step off exceeds a limit in {self.seen_shifted} of {self.shifted} comparisons"
        if self.shifted and not self.seen_shifted:
            yield "so losses and states say nothing about a step too many or too few; only the check resume does"
        if self.moments:
            yield f"moments that begin at zero exceed a limit of the samples: {', '.join(self.moments)}"
        elif self.has_moments:
            yield "moments that begin at zero exceed no limit; only the check resume sees them"
        yield "another batch is seen at any noise: batches, and what is compared within one run, stay exact"
        if self.loss is not None:
            yield (
                f"other random draws are seen where they change a loss by more than {self.loss:.2g} of it, or its mean "
                "or the state beyond their limits; below that a drift passes"
            )


def sight_of(plan: Plan, runs: Sequence[Recorded], tolerance: Tolerance) -> Sight:
    """Put the defects into the runs and count how many the limits see."""
    shifted = seen = 0
    names: set[str] = set()
    for run, other in permutations(runs, 2):
        for rank, events in run.digests.items():
            for step, ours in events.items():
                before = other.digests.get(rank, {}).get(step - 1)
                names.update(ours.data.get("parameters") or {})
                if before is None or step <= mean_begins(plan):
                    continue
                shifted += 1
                seen += _exceeds(ours, before, tolerance)
    slots = sorted(name for name in names if is_slot(name))
    moments = {pattern for name in slots if (pattern := _pattern(name, tolerance)) is not None}
    seen_moments = [pattern for pattern in sorted(moments) if _lost(plan, runs, slots, pattern, tolerance)]
    return Sight(shifted, seen, tuple(seen_moments), bool(slots), tolerance.loss)


def _lost(plan: Plan, runs: Sequence[Recorded], slots: Sequence[str], pattern: str, tolerance: Tolerance) -> bool:
    """Return whether lost moments of the pattern exceed the limit of the samples in each comparison."""
    names = [name for name in slots if _pattern(name, tolerance) == pattern]
    limit = tolerance.limits.get(Quantity("sample", pattern))
    before = mean_begins(plan) - 1
    if limit is None or not before:
        return False
    compared = [
        any(_apart_when_lost(name, lost, ours, theirs) > limit for name in names)
        for run, other in permutations(runs, 2)
        for rank, events in run.digests.items()
        if (lost := events.get(before)) is not None
        and (ours := events.get(before + 1)) is not None
        and (theirs := other.digests.get(rank, {}).get(before + 1)) is not None
    ]
    return bool(compared) and all(compared)


def _apart_when_lost(name: str, lost: Event, ours: Event, theirs: Event) -> float:
    """Return how far the samples are apart after a step without the moments ``lost`` before it; 0 if nothing tells."""
    before, after, other = (read_sample(samples_of(event).get(name)) for event in (lost, ours, theirs))
    if before is None or after is None or other is None or len(before.values) != len(after.values):
        return 0.0
    left = (value - _DECAY * gone for value, gone in zip(after.values, before.values, strict=True))
    apart = difference(replace(after, values=tuple(left)), other)
    return 0.0 if apart is None else apart.sample


def _pattern(name: str, tolerance: Tolerance) -> str | None:
    return next((pattern for pattern in tolerance.patterns() if fnmatchcase(name, pattern)), None)


def _exceeds(ours: Event, theirs: Event, tolerance: Tolerance) -> bool:
    """Return whether a loss or a parameter is beyond its limit, without the counters, which would give it away."""
    our_loss, their_loss = loss_of(ours), loss_of(theirs)
    apart_by = None if our_loss is None or their_loss is None else relative_difference(our_loss, their_loss)
    if tolerance.loss is not None and apart_by is not None and apart_by > tolerance.loss:
        return True
    for name in differing(ours.data.get("parameters"), theirs.data.get("parameters")):
        pattern = _pattern(name, tolerance)
        if pattern is None or is_step_counter(name):
            continue
        first, second = (read_sample(samples_of(event).get(name)) for event in (ours, theirs))
        apart = None if first is None or second is None else difference(first, second)
        for part, value in () if apart is None else (("norm", apart.norm), ("sample", apart.sample)):
            limit = tolerance.limits.get(Quantity(part, pattern))
            if limit is not None and value > limit:
                return True
    return False
