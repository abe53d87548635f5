"""``storage-stall``: makes every write to the checkpoint storage wait.

Before the job starts the directory becomes a disk of its own (a file). No process gets an error, and saved files can be
read. A waiting process cannot be killed before the stall ends.

On Ascend: shared storage that fails over.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.condition import Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage.own_disk import OnOwnDisk, is_own, own_mount
from chaos.faults.storage.storage import directory_of
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.disk_image import freeze, is_frozen, thaw
from chaos.machine.linux.mounts import mounts_at
from chaos.plan.rules.parameters import Parameter

THAW = "thaw-storage"
"""The undo action (chaos.faults.storage.undo)."""


class StorageStall(OnOwnDisk, Condition):
    """Stalls the storage."""

    name = "storage-stall"
    parameters = MappingProxyType({"seconds": Parameter("how long, in seconds", least=0.1, most=600, required=True)})

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Let the writers go on."""
        path = directory_of(victims[0])
        return [UndoStep(f"{fault}-thaw", fault, THAW, {"path": str(path)}, f"thaw {path}: writers wait for it")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Freeze the disk. A second victim on it changes nothing more."""
        own_mount(job, victim)
        try:
            freeze(directory_of(victim))
        except OSError as error:
            raise FaultMissed(f"{victim.storage} cannot be frozen: {error}") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's word that the file system is frozen."""
        mount = own_mount(job, victim)
        return {"signal": None, "mount": str(mount), "frozen": True} if is_frozen(directory_of(victim)) else None

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the kernel has no waiting writer left.

        The fault's thaw step is closed by then, so this method thaws again: a check by freezing, as in
        :meth:`evidence`, would leave the file system frozen if the harness were killed just then.
        """
        del job
        directory = directory_of(victim)
        if not any(is_own(mount, directory) for mount in mounts_at(directory)):
            return True  # the machine's own file system must not be thawed
        return not thaw(directory)


KIND = StorageStall()
