"""A mechanism's answer to an incident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chaos.plan.parts.response import Recovery
from chaos.plan.problems import Problems
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.steps import Loss, first_loss, may_be_ahead
from chaos.plan.recovery.vendor import MINDSPORE, Vendor
from chaos.plan.rules.constraints import Violation
from chaos.plan.schedule import Scheduled
from chaos.plan.topology.layout import reducing_groups
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Mechanism

PROVE_NONE = "write expect.checkpoint: none if the scenario is to prove that"


@dataclass(frozen=True)
class Context:
    """Every mechanism's knowledge of the scenario. ``on`` are the mechanisms that are switched on, implied ones too.

    ``before`` holds the recoveries that have let the training go on until now, ``faults`` the whole schedule.
    ``vendor`` is whose fault tolerance it is.
    """

    scenario: Scenario
    groups: Sequence[tuple[int, ...]]
    on: tuple[Mechanism, ...]
    problems: Problems
    before: tuple[Recovery, ...] = ()
    faults: Sequence[Scheduled] = ()
    vendor: Vendor = MINDSPORE

    def loss(self, incident: Incident) -> Loss:
        """Return how the training stops because of an incident."""
        loss = first_loss([fault.moment for fault in incident.faults], self.scenario.job.steps)
        loss = loss.within(self.steps_per_update, self.scenario.job.steps)
        if loss.at is None:
            return loss
        hit = {rank for fault in incident.faults if fault.moment.earliest == loss.at for rank in fault.fault.ranks}
        ahead = may_be_ahead(loss.at, hit, reducing_groups(self.scenario.cluster, self.groups), self.on)
        return replace(loss, highest=max(loss.highest, loss.at.step), ahead=ahead) if ahead else loss

    @property
    def steps_per_update(self) -> int:
        """The number of steps in one update of the optimizer."""
        return self.scenario.job.steps_per_update or 1

    def last_update(self, step: int) -> int:
        """Return the last step up to this one that made an update: the SDK goes back to it and counts no others."""
        return step - step % self.steps_per_update

    def goes_back(self, step: int) -> str:
        """Return why training goes on after a step before ``step``, the last complete one; empty where it does not.

        MindSpore sets the accumulated gradients (``accu_grads``) to zero after a repair.
        """
        if self.last_update(step) == step:
            return ""
        return (
            f"step {step} is the last that is sure to be complete, and the optimizer makes an update once in "
            f"{self.steps_per_update} steps (job.steps_per_update): the SDK goes back to the last one, so training "
            f"goes on after step {self.last_update(step)}, with nothing accumulated"
        )


@dataclass(frozen=True)
class Answer:
    """How a mechanism answers an incident.

    ``recovery`` is None where it cannot act at all. The launch ends with it where ``ends`` is True; otherwise training
    goes on after it, or, where the recovery is planned to fail, the next mechanism is asked about ``left``. ``why`` is
    the reason for the mechanism, ``how`` the reason for the step, each without its full stop. ``cause`` is the path of
    the scenario's key that it follows from. ``dead`` are the ranks that are lost to an end-of-life checkpoint, ``loss``
    how the training stops where it ends. ``ends_within`` are the seconds after the fault by which the job has ended,
    where the mechanism promises it.
    """

    recovery: Recovery | None
    why: str
    cause: str
    how: str = ""
    ends: bool = False
    left: Incident | None = None
    loss: Loss | None = None
    dead: tuple[int, ...] = ()
    ends_within: float | None = None


def note(violation: Violation, problems: Problems, *more: str) -> None:
    """Note a violated constraint as a problem, with more hints than its own."""
    hint = "; ".join(part for part in (violation.hint, *more) if part)
    problems.add(violation.path, violation.message, text=violation.text, hint=hint)
