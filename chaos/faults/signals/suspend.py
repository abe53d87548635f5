"""``suspend``: sends SIGSTOP to a rank's process; undone with SIGCONT, at the end or after ``seconds``.

On Ascend: a process that hangs.
"""

from __future__ import annotations

import signal
from dataclasses import asdict
from typing import Any

from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended
from chaos.plan.job_effect import SUSPENSION


class Suspend(Condition):
    """Stops the process without ending it."""

    name = "suspend"
    surface = "process"
    effect = SUSPENSION
    signal = signal.SIGSTOP
    from_outside = True
    held_without_seconds = True
    parameters = LASTS

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Continue each process."""
        return [
            UndoStep(
                id=f"{fault}-rank-{victim.rank}",
                fault=fault,
                action="resume-process",
                arguments=asdict(victim.identity),
                note=f"continue rank {victim.rank}",
            )
            for victim in victims
        ]

    def inject(self, job: Job, victim: Victim) -> None:
        """Send the signal to the rank's very process."""
        job.signal(victim.identity, self.signal)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's word that the process is stopped. Raises FaultMissed if the process has ended."""
        state = job.state(victim.identity)
        if has_ended(state):
            raise FaultMissed(f"rank {victim.rank} has ended before it could be suspended")
        return {"signal": int(self.signal)} if state == "stopped" else None

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same: anybody may continue a process."""
        return self.evidence(job, victim)

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the process has ended."""
        return has_ended(job.state(victim.identity))

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the kernel says that it goes on, or has ended."""
        return job.state(victim.identity) != "stopped"


KIND = Suspend()
