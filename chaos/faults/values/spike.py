"""``spike``: scales a rank's gradients for one step, so that its global norm is abnormal.

Give exactly one of ``norm`` and ``factor``. ``norm`` is the global norm of the step, beside ``job.tre.threshold``; only
one rank may be hit. ``factor`` scales each target; a run below the threshold is *unknown*.
``repeat`` (default 0) is how often the step spikes again when it is trained again. The last spike stays in the weights:
if later steps reach the threshold too, the run is *unknown* and needs a smaller spike. The job kind ``torch`` takes
``factor`` only.

On Ascend: bad data, a silent error or a diverging model.
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
