"""How far the run must equal the fault-free one, and how closely."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Comparable:
    """How far a run can be compared with the fault-free one.

    ``until`` is the last step whose state can be compared; 0 is the state before the first step, -1 means none.
    ``losses_until`` is the last step whose loss can be compared. ``why`` is the reason, a sentence without its full
    stop. ``finite_until`` is the last step whose loss must be finite, ``finite_gradients_until`` the last step whose
    reduced gradients must be; None where all must be.
    """

    until: int
    losses_until: int
    why: str
    finite_until: int | None = None
    finite_gradients_until: int | None = None


@dataclass(frozen=True)
class Equivalence:
    """The source of the fault-free run, and the values that must equal it.

    ``baseline`` is the scenario's word for its source. ``comparable`` is None where the whole run can be compared.
    """

    baseline: str
    loss_tolerance: float
    comparable: Comparable | None = None


def plan_equivalence(scenario: Scenario, comparable: Comparable | None) -> Equivalence:
    """Return the scenario's demands on the comparison, as far as the run can be compared."""
    loss = scenario.expect.loss
    return Equivalence(scenario.baseline, 0.0 if loss is None else loss.tolerance, comparable)
