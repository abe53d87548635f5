"""Changes: faults that make ranks compute what they should not, each with what it does to the comparison."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.plan.parts.equivalence import Comparable
from chaos.plan.points import Point
from chaos.plan.schedule import Scheduled


@dataclass(frozen=True)
class Change:
    """A fault that changes what is computed, and how far a run can be compared because of it alone.

    Args:
        fault: the fault.
        limit: how far the run can be compared until something takes the change back.
        lasting: whether nothing lifts that limit.
        silent: whether nothing reports it, so that its step must end for anybody to see what came of it.
        shown_by_state: what it changes, in words, where only a state that differs from the fault-free run's shows that.
    """

    fault: Scheduled
    limit: Comparable
    lasting: bool = False
    silent: bool = False
    shown_by_state: str = ""

    @property
    def point(self) -> Point:
        """When it is made."""
        return self.fault.moment.earliest

    @property
    def name(self) -> str:
        """The id of the fault."""
        return self.fault.fault.id
