"""``kill``: sends SIGKILL to a rank's process.

On Ascend: a training process ended with ``kill -9``, found by ``npu-smi info``.
"""

from __future__ import annotations

import signal
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH


class Kill(FaultKind):
    """Kills the process."""

    name = "kill"
    surface = "process"
    effect = DEATH
    signal = signal.SIGKILL
    from_outside = True

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a death cannot be put back."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Send the signal to the rank's very process."""
        job.signal(victim.identity, self.signal)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's exit status of the process. Raises FaultMissed if it ended in another way."""
        status = job.exit_status(victim.identity)
        if status is None:
            return None
        if status.told_by:
            raise FaultMissed(
                f"rank {victim.rank} ended with its node, not by this signal, according to {status.told_by}"
            )
        if status.signal != self.signal:
            raise FaultMissed(f"rank {victim.rank} ended with {status}, not with signal {int(self.signal)}")
        return {"signal": status.signal}


KIND = Kill()
