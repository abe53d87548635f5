"""``kill``: sends SIGKILL to a rank's process.

On Ascend: ``kill -9`` of a process that ``npu-smi info`` names.
"""

from __future__ import annotations

import signal
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job, launchers_of
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.job_effect import DEATH
from chaos.plan.rules.parameters import Parameter

WITH, LAUNCHER = "with", "launcher"


class Kill(FaultKind):
    """Kills the process."""

    name = "kill"
    surface = "process"
    effect = DEATH
    signal = signal.SIGKILL
    from_outside = True
    parameters = MappingProxyType(
        {
            WITH: Parameter(
                "launcher: kill the launcher of the targets' node first, so nothing of the job is left there",
                words=(LAUNCHER,),
            )
        }
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a death cannot be put back."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Send the signal to the rank's very process. Its launcher must be dead by then: it would end the others."""
        launcher = _launcher_of(job, victim)
        if launcher is not None and job.exit_status(launcher) is None:
            job.signal(launcher, self.signal)
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
        launcher = _launcher_of(job, victim)
        return {"signal": status.signal} if launcher is None else self._with_launcher(job, launcher)

    def _with_launcher(self, job: Job, launcher: ProcessIdentity) -> dict[str, Any] | None:
        """Return the signal by which the rank and its launcher have ended, None as long as the launcher lives."""
        status = job.exit_status(launcher)
        if status is None:
            return None
        if status.signal != self.signal:
            raise FaultMissed(f"launcher {launcher.pid} ended with {status}, not with signal {int(self.signal)}")
        return {"signal": int(self.signal), LAUNCHER: {"pid": launcher.pid, "signal": status.signal}}


def _launcher_of(job: Job, victim: Victim) -> ProcessIdentity | None:
    """Return the launcher of the victim's node where the fault takes it too, else None."""
    if victim.parameters.get(WITH) != LAUNCHER:
        return None
    launchers = [launcher for launcher in launchers_of(job) if launcher.node == victim.identity.node]
    if len(launchers) != 1:
        raise FaultMissed(f"the job has {len(launchers)} launchers on the node of rank {victim.rank}, not one")
    return launchers[0]


KIND = Kill()
