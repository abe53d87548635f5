"""``slow-rank``: makes a rank slower than the others: a straggler.

The others wait for it in the next all-reduce.

On Ascend: a card that lowers its clock, or a busy host.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import Victim
from chaos.faults.own_record import own_proof
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import NONE
from chaos.plan.rules.parameters import Parameter, Parameters
from chaos.plan.rules.required_place import RequiredPlace

PARAMETERS: Parameters = MappingProxyType(
    {
        "factor": Parameter("factor of a step's time", least=1.01, most=100, required=True),
        "steps": Parameter("number of steps", least=1, most=1_000_000, whole=True, default=1),
    }
)


class SlowRank(InRank):
    """Makes the rank wait after each of its steps, in proportion to the step's own time."""

    name = "slow-rank"
    effect = NONE
    parameters = PARAMETERS
    required_place = RequiredPlace(phases=("step.begin",), handlers=False)

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the slowness, and the number of slow steps."""
        parameters = victim.parameters
        return {"message": "slow", "factor": parameters["factor"], "steps": parameters.get("steps", 1)}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the rank's own record of its slowness. Raises FaultMissed if it has ended without one."""
        acting = own_proof(job, victim, "fault.acting", "it was slowed down")
        if acting is None:
            return None
        return {"signal": None, "act": self.name, "factor": acting.get("factor"), "steps": acting.get("steps")}


KIND = SlowRank()
