"""``storage-gone``: takes away the checkpoint directory.

Nothing can be made there (ENOENT); saved files stay.

On Ascend: a checkpoint path that was deleted or unmounted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.faults.kind import Victim
from chaos.faults.storage.mounted_over import MountedOver
from chaos.faults.storage.storage import refusal_of_name, shown, top_mount
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import Mount, mount_removed
from chaos.plan.job_effect import STORAGE_GONE


class StorageGone(MountedOver):
    """Takes the storage away."""

    name = "storage-gone"
    effect = STORAGE_GONE
    makes = "vanish"

    def mount(self, directory: Path) -> None:
        """Mount a directory that has been removed."""
        mount_removed(directory)

    def in_force(self, mount: Mount | None) -> bool:
        """Return whether the directory has been removed."""
        return mount is not None and mount.removed

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the removed directory that the rank sees, and the kernel's refusal of a file."""
        mount = top_mount(job, victim)
        if mount is None or not self.in_force(mount):
            return None
        refused = refusal_of_name(victim)
        return shown(mount, refused) if refused == "ENOENT" else None


KIND = StorageGone()
