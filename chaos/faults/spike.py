"""``spike``: a rank's gradients are scaled for one step, so that the global norm of that step is abnormal.

On Ascend such a step comes from bad data, a silent error or a diverging model; MindFormers watches the global norm for
it. Parameters, exactly one of the first two:

- ``norm``: the global norm that the step must get, an absolute number beside ``job.tre.threshold``. One rank only: it
  works the factor out from the gradients of the others.
- ``factor``: what the gradients of every rank that is hit are multiplied with. The plan takes it for enough to reach
  the threshold; a run in which it was not is *unknown*.
- ``repeat``: how often the same step spikes again when it is trained again. Default 0.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event
from chaos.history.ledger import UndoStep
from chaos.platforms.base import Job

ABNORMAL = "abnormal result"
"""Effect of a fault kind whose step computes what it should not."""


class Spike:
    """Scales the gradients inside the rank, before they are reduced."""

    name = "spike"
    effect = ABNORMAL
    signal = None

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """None: nothing outlives the step but what the job makes of it."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Tell the agent, which holds the rank, what to do. Raises FaultMissed when it does not hold it."""
        del job
        if victim.answer is None:
            raise FaultMissed(f"rank {victim.rank} is not held at a barrier: {self.name} needs a trigger with a step")
        victim.answer({"message": "alter", "repeat": 0, **victim.parameters})

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rank's own record that it has scaled its gradients. Raises FaultMissed if it has ended without."""
        scaled = own_event(victim.record, "fault.scaled", victim.fault)
        if scaled is not None:
            return {"signal": None, "factor": scaled.get("factor"), "norm": scaled.get("norm")}
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended and has not recorded that it scaled its gradients")
        return None


KIND = Spike()
