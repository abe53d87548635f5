"""``freeze``: stops a rank's process for some seconds, then lets it go on (SIGSTOP, SIGCONT).

Unlike after ``suspend`` the rank is back before its heartbeat is missed.

On Ascend: a host that swaps or is migrated live, or a debugger.
"""

from __future__ import annotations

import signal
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from chaos.faults.condition import Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended
from chaos.plan.rules.parameters import Parameter


class Freeze(Condition):
    """Stops the process for a moment."""

    surface = "process"
    name = "freeze"
    signal = int(signal.SIGSTOP)
    from_outside = True
    parameters = MappingProxyType(
        {
            "seconds": Parameter(
                "how long, in seconds; after longer MindIO TFT takes the rank for lost",
                least=0.1,
                most=3,
                required=True,
            )
        }
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Continue each process."""
        return [
            UndoStep(
                f"{fault}-rank-{victim.rank}",
                fault,
                "resume-process",
                asdict(victim.identity),
                f"continue rank {victim.rank}",
            )
            for victim in victims
        ]

    def inject(self, job: Job, victim: Victim) -> None:
        """Send the signal to the rank's very process."""
        job.signal(victim.identity, signal.SIGSTOP)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's word that the process is stopped. Raises FaultMissed if the process has ended."""
        state = job.state(victim.identity)
        if has_ended(state):
            raise FaultMissed(f"rank {victim.rank} has ended before it could be stopped")
        return {"signal": int(signal.SIGSTOP), "state": state} if state == "stopped" else None

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the kernel says that it goes on, or has ended."""
        return job.state(victim.identity) != "stopped"


KIND = Freeze()
