"""``read-only``: makes the checkpoint directory read-only, also for root.

On Ascend: a remount, by mistake or after a disk error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.faults.kind import Victim
from chaos.faults.storage.mounted_over import MountedOver
from chaos.faults.storage.storage import refusal, shown, top_mount
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import Mount, mount_read_only
from chaos.plan.job_effect import STORAGE_READ_ONLY


class ReadOnly(MountedOver):
    """Makes the storage read-only."""

    name = "read-only"
    effect = STORAGE_READ_ONLY
    makes = "read-only"

    def mount(self, directory: Path) -> None:
        """Mount the directory on itself, read-only."""
        mount_read_only(directory)

    def in_force(self, mount: Mount | None) -> bool:
        """Return whether the mount is read-only."""
        return mount is not None and mount.read_only

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the read-only mount that the rank sees, and the kernel's refusal of a file."""
        mount, refused = top_mount(job, victim), refusal(victim, 1)
        return shown(mount, refused) if mount is not None and self.in_force(mount) and refused == "EROFS" else None


KIND = ReadOnly()
