"""``disk-full``: fills the file system of the checkpoints, so a save breaks off with ENOSPC.

Before the job starts the directory becomes a file system in memory.

On Ascend: full storage when the dying ranks save.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from chaos.faults.behaviours import Preparing
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage.storage import directory_of, refusal, shown, top_mount, unmount_step
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import mount_memory, mounts_at, resize_memory
from chaos.plan.job_effect import STORAGE_FULL

SOURCE = "chaos-disk"
"""The name that marks the file system as the harness's own."""

FREE_BYTES = 64 << 10
"""Bytes that are left: enough to begin a file, too little for a checkpoint."""

_DISK_BYTES = 16 << 30
"""Size before the fault. Memory is taken by written files, not by the size."""


class DiskFull(Preparing):
    """Fills the storage."""

    name = "disk-full"
    surface = "mounts"
    effect = STORAGE_FULL
    needs_from_start = "puts the job's checkpoints on a file system of their own, before the job starts"
    needs = ("mounts",)

    def prepare_steps(self, fault: str, storage: Path) -> list[UndoStep]:
        """Remove the file system and keep its files."""
        return [unmount_step(fault, storage, f"unmount the file system at {storage} and keep its files")]

    def prepare(self, storage: Path) -> None:
        """Give the job a file system of its own to save on."""
        storage.mkdir(parents=True, exist_ok=True)
        if not any(mount.source == SOURCE for mount in mounts_at(storage)):  # another fault has prepared it
            mount_memory(storage, SOURCE, _DISK_BYTES)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step beyond the preparation's."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Shrink the file system. A second victim on it changes nothing more."""
        mount = top_mount(job, victim)
        if mount is None or mount.source != SOURCE:
            raise FaultMissed(f"rank {victim.rank} sees {mount or 'no mount'} at {victim.storage}, not {SOURCE}")
        if refusal(victim, 2 * FREE_BYTES) is None:
            statistics = os.statvfs(directory_of(victim))
            used = (statistics.f_blocks - statistics.f_bfree) * statistics.f_frsize
            resize_memory(directory_of(victim), used + FREE_BYTES)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's ENOSPC for a file of twice the room."""
        mount, refused = top_mount(job, victim), refusal(victim, 2 * FREE_BYTES)
        return shown(mount, refused) if mount is not None and refused == "ENOSPC" else None


KIND = DiskFull()
