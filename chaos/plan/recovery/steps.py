"""The step that is saved when ranks are lost, and the faults that can be reached at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from chaos.plan.points import Moment, Point
from chaos.plan.recovery.mechanism import IN_STEP
from chaos.scenario.models.terms import Mechanism


@dataclass(frozen=True)
class Loss:
    """How the training stops.

    ``at`` is the point at which the first rank is lost, None where triggers leave it open. ``lowest`` and ``highest``
    bound the last step that survivors complete; they are equal where it is known, and the same for all of them. Where
    only ``ahead`` may complete a step more than the others, ``highest`` is that step. ``accumulating``: where gradients
    are reduced only for an update, survivors may complete the steps before the next one, up to ``highest``.
    """

    at: Point | None
    lowest: int
    highest: int
    ahead: tuple[int, ...] = ()
    accumulating: bool = False

    @property
    def step(self) -> int | None:
        """The last step that every survivor completes, None where it is open. 0 means that none was completed."""
        return None if self.at is None or self.accumulating else self.at.last_complete

    def within(self, steps_per_update: int, last_step: int) -> Loss:
        """Return the same loss in a job that makes one update in ``steps_per_update`` steps.

        A job may reduce its gradients in every step or only for an update, and nothing outside the job shows which.
        """
        if self.at is None or steps_per_update == 1:
            return self
        next_update = (self.lowest // steps_per_update + 1) * steps_per_update
        highest = max(self.highest, min(next_update, last_step) - 1)
        return replace(self, highest=highest, accumulating=highest > self.lowest)


def first_loss(lethal: Sequence[Moment], last_step: int) -> Loss:
    """Return the loss that stops the training: the first loss does, later ones only take more ranks away.

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


def may_be_ahead(
    at: Point, hit: Collection[int], groups: Sequence[tuple[int, ...]], on: Iterable[Mechanism]
) -> tuple[int, ...]:
    """Return the ranks that may finish the step in whose all-reduce the others wait for ranks lost at its entry.

    A rank at that entry has taken part in everything else of the step. The gradients are reduced within each of
    ``groups``, so a group without a lost rank finishes the step, unless a mechanism that is ``on`` lets no rank update
    its weights before all have reduced. In the next step its ranks wait, in the forward pass at the latest.
    """
    if not at.splits or not IN_STEP.isdisjoint(on):
        return ()
    gone = frozenset(hit)
    return tuple(sorted(rank for members in groups if gone.isdisjoint(members) for rank in members))


def block_point(lethal: Sequence[Moment]) -> Point | None:
    """Return the last point that any rank can reach, None where no loss is certain to come at a known point.

    The first exact loss blocks every rank at the latest; an open loss can only block them earlier.
    """
    first = min((moment.earliest for moment in lethal if moment.exact), default=None)
    return None if first is None else first.block
