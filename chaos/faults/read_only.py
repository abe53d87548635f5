"""``read-only``: the directory that the job saves its checkpoints in cannot be written to any more.

The directory is mounted on itself, read-only: unlike its mode this also keeps out root. It is what a file system does
that the kernel has remounted after an error of the disk.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage import directory_of, refusal, shown, top_mount, unmount_step
from chaos.history.ledger import UndoStep
from chaos.plan.model import STORAGE_READ_ONLY
from chaos.platforms.base import Job
from chaos.platforms.mounts import mount_read_only


class ReadOnly:
    """Makes the storage read-only. On Ascend: a checkpoint path remounted read-only, or mounted so by mistake."""

    name = "read-only"
    means = "mounts"
    effect = STORAGE_READ_ONLY
    signal = None
    needs_from_start = "works on the directory that the job saves its checkpoints in, which the job of a scenario tells"
    needs = ("mounts",)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Take the mount away again."""
        directory = directory_of(victims[0])
        return [unmount_step(fault, directory, f"unmount what makes {directory} read-only")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Mount the directory read-only on itself. A second victim in it changes nothing more."""
        directory = directory_of(victim)
        directory.mkdir(parents=True, exist_ok=True)
        mount = top_mount(job, victim)
        if mount is not None and mount.read_only:
            return
        try:
            mount_read_only(directory)
        except OSError as error:
            raise FaultMissed(f"{directory} cannot be made read-only: {error}") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rank's process sees a read-only mount there, and the kernel refuses a file."""
        mount, refused = top_mount(job, victim), refusal(victim, 1)
        return shown(mount, refused) if mount is not None and mount.read_only and refused == "EROFS" else None


KIND = ReadOnly()
