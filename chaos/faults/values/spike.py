"""``spike``: scales a rank's gradients for one step, so that the global norm of that step is abnormal.

On Ascend such a step comes from bad data, a silent error or a diverging model; MindFormers watches the global norm for
it. Parameters, exactly one of the first two:

- ``norm``: the global norm that the step must get, an absolute number beside ``job.tre.threshold``. One rank only: it
  works the factor out from the gradients of the others.
- ``factor``: the scale factor of the gradients of every rank that is hit. The plan takes it for enough to reach
  the threshold; a run in which it was not is *unknown*.
- ``repeat``: how often the same step spikes again when it is trained again. Default 0.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import Victim
from chaos.faults.own_record import own_proof
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import ABNORMAL


class Spike(InRank):
    """Scales the gradients inside the rank, before they are reduced."""

    name = "spike"
    effect = ABNORMAL

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the scenario's fields of the spike, made once unless the scenario says how often."""
        return {"message": "alter", "repeat": 0, **victim.parameters}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the rank's own record that it has scaled its gradients.

        Raises FaultMissed if it has ended without one.
        """
        scaled = own_proof(job, victim, "fault.scaled", "it scaled its gradients")
        return None if scaled is None else {"signal": None, "factor": scaled.get("factor"), "norm": scaled.get("norm")}


KIND = Spike()
