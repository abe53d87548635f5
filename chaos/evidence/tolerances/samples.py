"""Samples of parameters beside their digests, and how far two of them are apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chaos.history.event import Event

EXACT = "exact"
"""In place of a sample: the parameter has integers, and must be equal bit for bit (:mod:`chaos.agent.digests`)."""


@dataclass(frozen=True)
class Sample:
    """A parameter as :mod:`chaos.agent.digests` has recorded it: its norm, its mean, and values at chosen places."""

    count: int
    norm: float
    mean: float
    values: tuple[float, ...]

    @property
    def finite(self) -> bool:
        """Whether every recorded number is finite."""
        return all(map(math.isfinite, (self.norm, self.mean, *self.values)))


@dataclass(frozen=True)
class Difference:
    """How far two samples are apart, relative to the norm of the second.

    ``norm`` is the difference of the norms or of the means, whichever is larger. It sees all values, and noise of many
    values averages out in it. ``sample`` is the distance of the sampled values. Infinite where a value is not finite,
    or where the second parameter is zero and the first is not.
    """

    norm: float
    sample: float


def samples_of(event: Event | None) -> dict[str, str]:
    """Return the samples in an event as they are written, by the names of their parameters."""
    samples = None if event is None else event.data.get("samples")
    return samples if isinstance(samples, dict) else {}


def read_sample(text: object) -> Sample | None:
    """Return a sample from its line; None where the text is not a sample."""
    words = text.split() if isinstance(text, str) else []
    try:
        count = int(words[0])
        norm, mean, *values = map(float, words[1:])
    except (IndexError, ValueError):
        return None
    return Sample(count, norm, mean, tuple(values)) if 0 < len(values) <= count else None


def difference(ours: Sample, theirs: Sample) -> Difference | None:
    """Return how far two samples are apart; None where they are not of one parameter."""
    if ours.count != theirs.count or len(ours.values) != len(theirs.values):
        return None
    if not (ours.finite and theirs.finite):
        return Difference(math.inf, math.inf)
    # The mean times the root of the count is the length along one direction, as the norm is along all.
    norm = max(abs(ours.norm - theirs.norm), abs(ours.mean - theirs.mean) * theirs.count**0.5)
    distance = math.dist(ours.values, theirs.values)
    # By the norm of all values: the sampled ones may all be zero.
    length = theirs.norm * (len(theirs.values) / theirs.count) ** 0.5
    return Difference(_relative(norm, theirs.norm), _relative(distance, length))


def _relative(value: float, whole: float) -> float:
    return value / whole if whole else (math.inf if value else 0.0)
