"""``slow-storage``: delays every open of a file on the checkpoint storage by ``delay``; nothing fails.

On Ascend: shared storage that is overloaded or far away.
"""

from __future__ import annotations

import os
import time
from types import MappingProxyType
from typing import Any

from chaos.faults.beside import client as beside
from chaos.faults.condition import LASTS, Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage.storage import FROM_START, directory_of, top_mount, unmount_step
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import Mount, mount_itself, mounts_at
from chaos.machine.linux.process import has_ended
from chaos.plan.rules.parameters import Parameter


class SlowStorage(Condition):
    """Delays the storage."""

    surface = "mounts"
    name = "slow-storage"
    parameters = MappingProxyType(
        {"delay": Parameter("delay of each open, in seconds", least=0.01, most=10, required=True), **LASTS}
    )
    needs_from_start = FROM_START
    needs = ("mounts", "fanotify")

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Remove the watch, and end the process that answers."""
        directory = directory_of(victims[0])
        return [
            unmount_step(fault, directory, f"unmount {directory}, which is mounted on itself to be watched"),
            beside.switch_step(fault, victims[0], "end the process that delays what is opened"),
        ]

    def inject(self, job: Job, victim: Victim) -> None:
        """Watch the directory, and delay the answers. A second victim in it changes nothing more."""
        directory = directory_of(victim)
        directory.mkdir(parents=True, exist_ok=True)
        top_mount(job, victim)
        if beside.switch_of(victim).exists():
            return
        try:
            mount_itself(directory)
        except OSError as error:
            raise FaultMissed(f"{directory} cannot be watched: {error}") from error
        beside.start("slow_opens", victim, str(directory), str(victim.parameters["delay"]))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the time to open a file there: no less than the delay."""
        return self._opened(victim, top_mount(job, victim), f"/proc/{victim.identity.pid}/root{directory_of(victim)}")

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same; where the rank has ended, by the mounts that the harness sees there."""
        if not has_ended(job.state(victim.identity)):
            return self.evidence(job, victim)
        mounts = mounts_at(directory_of(victim))
        return self._opened(victim, mounts[-1] if mounts else None, str(directory_of(victim)))

    def _opened(self, victim: Victim, mount: Mount | None, directory: str) -> dict[str, Any] | None:
        report = beside.report_of(victim)
        if mount is None or report is None:
            return None
        began = time.monotonic()
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        took = time.monotonic() - began
        if took < float(victim.parameters["delay"]):
            return None
        return {"signal": None, "mount": str(mount), "opened_after": round(took, 6)}

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the answering process has ended."""
        del job
        return beside.is_off(beside.switch_of(victim))


KIND = SlowStorage()
