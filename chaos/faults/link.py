"""``link``: a rank's link of the parameter plane is down. Its collective neither sends nor receives any more.

No process ends and no connection is closed: all ranks wait in the collective until it gives up (HCCL_EXEC_TIMEOUT) or,
on the rank whose link it is, until the watchdog finds the error.

On Ascend: a broken network port or cable of the NPU, or ``hccn_tool -i ID -link -s down``.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.history.jsonl import decode, read_lines
from chaos.history.ledger import UndoStep
from chaos.platforms.base import Job

ACTION = "link.down"


class Link:
    """Takes down the link of the ranks that are held at their all-reduce."""

    name = "link"
    effect = "communication error"
    signal: int | None = None

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """None: the link is one of the process, and ends with it."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Let the rank's device layer take its link down. Raises FaultMissed when the rank is not held."""
        del job
        if victim.answer is None:
            raise FaultMissed(f"rank {victim.rank} is not held at a barrier: {self.name} needs a trigger with a step")
        victim.answer({"message": "device", "action": ACTION})

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rank's own record that its link is down. Raises FaultMissed if it has ended without."""
        for line in read_lines(victim.record):
            if line.text is not None and not line.torn and b'"fault.device"' in line.text:
                event = decode(line.text)
                if event.get("event") == "fault.device" and event.get("action") == ACTION:
                    return {"signal": None, "device": ACTION}
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended and has not recorded that its link went down")
        return None


KIND = Link()
