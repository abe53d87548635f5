"""``disk-quota``: limits the disk of the checkpoints, so a save breaks off with ENOSPC.

Before the job starts the directory becomes a disk of its own (a file).

On Ascend: the project quota of a shared file system.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage.own_disk import OnOwnDisk, own_mount
from chaos.faults.storage.storage import directory_of, refusal, shown
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import Mount
from chaos.plan.job_effect import STORAGE_FULL
from chaos.plan.rules.parameters import Parameter, value_of

_MOST = 1 << 20


class DiskQuota(OnOwnDisk):
    """Limits the storage."""

    name = "disk-quota"
    effect = STORAGE_FULL
    parameters: Mapping[str, Parameter] = MappingProxyType(
        {"kilobytes": Parameter("KiB that may still be written", least=8, most=_MOST, whole=True, default=64)}
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step beyond the preparation's."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Keep all but a rest of the space back. A second victim on the disk changes nothing more."""
        mount, left = own_mount(job, victim), self._free_bytes(victim)
        if refusal(victim, 2 * left) is None:
            statistics = os.statvfs(directory_of(victim))
            try:
                _reserved(mount).write_text(str(statistics.f_bfree - left // statistics.f_bsize))
            except OSError as error:
                raise FaultMissed(f"{victim.storage} cannot be limited: {error}") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's ENOSPC for a file of twice the rest."""
        mount, refused = own_mount(job, victim), refusal(victim, 2 * self._free_bytes(victim))
        return shown(mount, refused) if refused == "ENOSPC" else None

    def _free_bytes(self, victim: Victim) -> int:
        """Return the bytes that may still be written."""
        return int(value_of(victim.parameters, self.parameters, "kilobytes")) << 10


def _reserved(mount: Mount) -> Path:
    """Return the kernel's file for the number of blocks that a mounted ext4 keeps back."""
    return Path("/sys/fs/ext4", Path(mount.source).name, "reserved_clusters")


KIND = DiskQuota()
