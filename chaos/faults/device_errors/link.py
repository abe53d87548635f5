"""``link``: takes a rank's link of the parameter plane down: its collective neither sends nor receives any more.

No process ends, no connection is closed. The ranks wait in their all-reduce until the collective gives up
(HCCL_EXEC_TIMEOUT) or the target's watchdog finds the error.

On Ascend: a broken network port or cable of the NPU.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import Victim
from chaos.faults.own_record import own_proof
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import COMMUNICATION

ACTION = "link.down"


class Link(InRank):
    """Takes down the link of the ranks that are held at their all-reduce."""

    name = "link"
    effect = COMMUNICATION

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the order to the rank's device layer: take the link down."""
        del victim
        return {"message": "device", "action": ACTION}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the rank's own record that its link is down. Raises FaultMissed if the rank has ended without one."""
        down = own_proof(job, victim, "fault.device", "its link went down", _is_it)
        return None if down is None else {"signal": None, "device": ACTION}


def _is_it(done: dict[str, Any]) -> bool:
    return done.get("action") == ACTION


KIND = Link()
