"""``nonfinite-loss``: makes the loss of one step infinite or not a number, and the gradients of the rank with it; all
ranks get them.

On Ascend: an overflow in float16, or a bad sample. LossMonitor and MFLossMonitor end the job there; the job kinds of
this fault have neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from chaos.faults.kind import Victim
from chaos.faults.values.altering import Altering
from chaos.machine.job.protocol import Job
from chaos.plan.rules.parameters import Parameter
from chaos.plan.rules.required_place import RequiredPlace


@dataclass(frozen=True)
class NonfiniteLoss(Altering):
    """Changes the result of the step's computation, before the gradients are reduced."""

    def inject(self, job: Job, victim: Victim) -> None:
        """Order the value from the agent, which holds the rank.

        Raises FaultMissed when the agent does not hold the rank.
        """
        super().inject(job, victim if "value" in victim.parameters else _with_default(victim))


def _with_default(victim: Victim) -> Victim:
    return replace(victim, parameters={**victim.parameters, "value": "nan"})


KIND = NonfiniteLoss(
    "nonfinite-loss",
    "loss",
    RequiredPlace(phases=("forward",), handlers=False),
    MappingProxyType({"value": Parameter("the loss", words=("nan", "inf"), default="nan")}),
)
