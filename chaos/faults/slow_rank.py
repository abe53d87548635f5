"""``slow-rank``: a rank takes longer for its steps than the others: a straggler.

Parameters: ``factor``, how many times as long a step of it takes, and ``steps``, for how many steps (default 1), from
that of the trigger on. What is added comes behind its own work, so the others wait for it in the next all-reduce.

On Ascend: a card that clocks itself down, a host whose cores are taken by others.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event
from chaos.history.ledger import UndoStep
from chaos.plan.asks import Asks
from chaos.plan.parameters import Parameter, Parameters
from chaos.platforms.base import Job

PARAMETERS: Parameters = MappingProxyType(
    {
        "factor": Parameter("how many times as long a step takes", least=1.01, most=100, required=True),
        "steps": Parameter("for how many steps", least=1, most=1_000_000, whole=True, default=1),
    }
)


class SlowRank:
    """Makes the rank wait after each of its steps, in proportion to what the step has taken."""

    name = "slow-rank"
    effect = "none"
    signal = None
    parameters = PARAMETERS
    asks = Asks(phases=("step.begin",), handlers=False)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """None: it ends by itself after ``steps``, or with its process."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Tell the agent, which holds the rank. Raises FaultMissed when it does not hold it."""
        del job
        if victim.answer is None:
            raise FaultMissed(f"rank {victim.rank} is not held at a barrier: {self.name} needs a trigger with a step")
        given = victim.parameters
        victim.answer({"message": "slow", "factor": given["factor"], "steps": given.get("steps", 1)})

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rank's own record that it is slow from now on. Raises FaultMissed if it has ended without."""
        acting = own_event(victim.record, "fault.acting", victim.fault)
        if acting is not None:
            return {"signal": None, "act": self.name, "factor": acting.get("factor"), "steps": acting.get("steps")}
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended and has not recorded that it was slowed down")
        return None


KIND = SlowRank()
