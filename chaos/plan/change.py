"""Changes: faults that make ranks compute wrong values, each with its effect on the comparison."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.plan.parts.equivalence import Comparable
from chaos.plan.points import Point
from chaos.plan.schedule import Scheduled


@dataclass(frozen=True)
class Change:
    """A fault that changes a computed value, and how far the run can be compared because of it alone.

    Args:
        fault: the fault.
        limit: how far the run can be compared until a recovery reverts the change.
        lasting: whether nothing lifts that limit.
        silent: whether nothing reports it, so that its result is visible only once its step has ended.
        shown_by_state: the changed value, in words, where only a state unlike the fault-free run's shows the change.
    """

    fault: Scheduled
    limit: Comparable
    lasting: bool = False
    silent: bool = False
    shown_by_state: str = ""

    @property
    def point(self) -> Point:
        """The point at which it is made."""
        return self.fault.moment.earliest

    @property
    def name(self) -> str:
        """The id of the fault."""
        return self.fault.fault.id
