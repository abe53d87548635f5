"""``terminate``: sends SIGTERM to a rank's process.

Under MindIO TFT nothing happens (an empty handler). Without the SDK the process ends.

On Ascend: a scheduler's signal to a pod before it kills the pod.
"""

from __future__ import annotations

import signal
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job, TellsSignals
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.procfs import Signals, read_signals
from chaos.plan.job_effect import TERMINATION


class Terminate(FaultKind):
    """Asks the process to end."""

    name = "terminate"
    surface = "process"
    effect = TERMINATION
    signal = signal.SIGTERM
    from_outside = True

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a signal that was taken cannot be put back."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Send the signal to the rank's very process. Raises FaultMissed where its delivery could never be shown."""
        signals = _signals(job, victim)
        if signals is None:
            raise FaultMissed(f"rank {victim.rank} has ended before it could be terminated")
        if self.signal in signals.ignored:
            raise FaultMissed(f"rank {victim.rank} ignores SIGTERM: the kernel drops it, and nothing can show it")
        if self.signal in signals.pending:
            raise FaultMissed(f"rank {victim.rank} has another SIGTERM waiting: the two could not be distinguished")
        job.signal(victim.identity, self.signal)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the exit status, or the kernel's word that a handler has taken the signal."""
        status = job.exit_status(victim.identity)
        if status is not None:
            return _of_end(victim, status)
        signals = _signals(job, victim)
        if signals is None or self.signal in signals.pending or self.signal not in signals.caught:
            return None
        if job.state(victim.identity) != "alive":
            return None
        return {"signal": int(self.signal), "became": "taken by a handler", "caught": True, "pending": False}


def _signals(job: Job, victim: Victim) -> Signals | None:
    if isinstance(job, TellsSignals):
        return job.signals(victim.identity)
    return read_signals(victim.identity.pid)


def _of_end(victim: Victim, status: ExitStatus) -> dict[str, Any]:
    if not status.known:
        raise FaultMissed(f"rank {victim.rank} has ended, and its exit status is unknown")
    if status.signal not in (None, signal.SIGTERM):
        raise FaultMissed(f"rank {victim.rank} ended with {status}, not with signal {int(signal.SIGTERM)}")
    caught = status.signal is None
    how = f"taken by a handler that ended the process with {status}" if caught else "ended the process"
    return {"signal": int(signal.SIGTERM), "became": how, "caught": caught, "pending": False}


KIND = Terminate()
