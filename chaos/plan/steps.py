"""Which step is saved when ranks are lost, and which faults can be reached at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.plan.moments import Moment, Point


@dataclass(frozen=True)
class Loss:
    """How the training stops.

    ``at`` is the point at which the first rank is lost, None where triggers leave it open. ``lowest`` and ``highest``
    bound the last step that the survivors complete; they are equal where it is known.
    """

    at: Point | None
    lowest: int
    highest: int

    @property
    def step(self) -> int | None:
        """Last step that every survivor completes, None where it is open. 0 means that none was completed."""
        return None if self.at is None else self.at.last_complete


def first_loss(lethal: Sequence[Moment], last_step: int) -> Loss:
    """The loss that stops the training: the first one does, later ones only take more ranks away.

    Args:
        lethal: moments of the faults that take ranks away, at least one.
        last_step: the step that the job ends with.

    A moment that is open but cannot come before the first exact one (it waits for that fault) changes nothing.
    """
    exact = [moment.earliest for moment in lethal if moment.exact]
    first = min(exact, default=None)
    lowest = min(moment.earliest for moment in lethal).last_complete
    if first is not None and all(moment.exact or moment.earliest >= first for moment in lethal):
        return Loss(first, first.last_complete, first.last_complete)
    highest = last_step - 1 if first is None else min(first.last_complete, last_step - 1)
    return Loss(None, lowest, highest)


def block_point(lethal: Sequence[Moment]) -> Point | None:
    """The last point that any rank can reach, None where no loss is certain to come at a known point.

    The first exact loss blocks everyone at the latest; an open one can only block them earlier.
    """
    first = min((moment.earliest for moment in lethal if moment.exact), default=None)
    return None if first is None else first.block
