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
class StateTolerance:
    """The largest differences of the parameters that a pattern of names fits, relative to their norm; None: any."""

    pattern: str
    norm: float | None
    sample: float | None


@dataclass(frozen=True)
class Equivalence:
    """The source of the fault-free run, and the values that must equal it.

    ``baseline`` is the scenario's word for its source. ``comparable`` is None where the whole run can be compared.
    ``mean_tolerance`` is of the mean loss after the recovery, None where it is not judged. ``state_tolerances`` are
    none where the noise of the parameters has not been measured. ``false_alarm`` is how often a sound run exceeds a
    tolerance, as it was measured. ``outdated_by`` names, in words, what has changed in the job since then: then no
    tolerance tells anything about this run.
    """

    baseline: str
    loss_tolerance: float
    comparable: Comparable | None = None
    mean_tolerance: float | None = None
    state_tolerances: tuple[StateTolerance, ...] = ()
    false_alarm: float | None = None
    outdated_by: tuple[str, ...] = ()

    @property
    def why_outdated(self) -> str:
        """Why the tolerances do not hold for this run, and what to do; empty where they hold."""
        if not self.outdated_by:
            return ""
        listed = ", ".join(self.outdated_by)
        return f"the tolerance was measured with another job (changed since: {listed}); run chaos calibrate again"

    @property
    def exact(self) -> bool:
        """Whether every value must equal the fault-free run's bit for bit."""
        return self.loss_tolerance == 0 and not self.state_tolerances


def plan_equivalence(scenario: Scenario, comparable: Comparable | None) -> Equivalence:
    """Return the scenario's demands on the comparison, as far as the run can be compared."""
    loss = scenario.expect.loss
    if loss is None:
        return Equivalence(scenario.baseline, 0.0, comparable)
    states = tuple(StateTolerance(pattern, limits.norm, limits.sample) for pattern, limits in loss.state.items())
    return Equivalence(scenario.baseline, loss.tolerance, comparable, loss.mean, states, loss.false_alarm)
