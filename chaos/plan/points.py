"""The moment when a trigger can fire: a point in the training, exact or as a lower bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, get_args

from chaos.scenario.models.terms import Phase

PHASE_ORDER: tuple[str, ...] = get_args(Phase)
"""Barrier names in the order in which one step passes them."""

LAST_PHASE = PHASE_ORDER.index("checkpoint.end")
"""The last barrier that an ordinary step passes; a checkpoint is loaded only in a rollback."""

_ALL_REDUCE = PHASE_ORDER.index("allreduce.enter")

EXCHANGE = PHASE_ORDER[: _ALL_REDUCE + 1]
"""Phases of a step up to the exchange of the gradients, in which an error of communication arises."""


class Point(NamedTuple):
    """A barrier of a step, comparable: ``phase`` is the index in :data:`PHASE_ORDER`."""

    step: int
    phase: int

    @property
    def contributed(self) -> bool:
        """Whether a rank at this point has already given its gradients to the all-reduce of the step."""
        return self.phase > _ALL_REDUCE

    @property
    def splits(self) -> bool:
        """Whether a rank at this point has left every other collective of the step behind, except the all-reduce."""
        return self.phase == _ALL_REDUCE

    @property
    def last_complete(self) -> int:
        """The last step that the other ranks complete when a rank is lost here.

        A rank lost up to the entry of the all-reduce leaves the others blocked in it, so all complete only the step
        before. A rank lost later has contributed: the others finish the step and block in the next one.
        """
        return self.step if self.contributed else self.step - 1

    @property
    def block(self) -> Point:
        """The last point that the other ranks reach when a rank is lost here: the all-reduce that misses it."""
        return Point(self.last_complete + 1, _ALL_REDUCE)

    def __str__(self) -> str:
        return f"{PHASE_ORDER[self.phase]} of step {self.step}"


START = Point(1, 0)
"""The first barrier of a job. Elapsed time is counted from here."""


@dataclass(frozen=True)
class Moment:
    """The moment of a fault: ``earliest`` is the exact point, or the earliest possible one where it is open."""

    earliest: Point
    exact: bool


def point(step: int, phase: str | None) -> Point:
    """Return the barrier of a trigger with a step; the default phase is the beginning of the step."""
    return Point(step, PHASE_ORDER.index(phase or PHASE_ORDER[0]))


def when_all(moments: Iterable[Moment]) -> Moment:
    """Return the moment when all conditions have come true: not before the latest of them."""
    candidates = tuple(moments)
    return Moment(max(moment.earliest for moment in candidates), all(moment.exact for moment in candidates))


def when_any(moments: Iterable[Moment]) -> Moment:
    """Return the moment when the first condition decides: not before the earliest of them."""
    candidates = tuple(moments)
    return Moment(min(moment.earliest for moment in candidates), all(moment.exact for moment in candidates))
