"""``storage-gone``: the directory that the job saves its checkpoints in has vanished under it.

A removed directory is mounted in its place: it is empty, and nothing can be made in it; the kernel answers
with ENOENT. It is what a process sees whose directory somebody has deleted, or whose mount was taken away. Nothing that
was saved is touched.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage import directory_of, refusal_of_name, shown, top_mount, unmount_step
from chaos.history.ledger import UndoStep
from chaos.plan.model import STORAGE_GONE
from chaos.platforms.base import Job
from chaos.platforms.mounts import mount_removed


class StorageGone:
    """Takes the storage away. On Ascend: a checkpoint path that was deleted, or a shared one that was unmounted."""

    means = "mounts"
    name = "storage-gone"
    effect = STORAGE_GONE
    signal = None
    needs_from_start = "works on the directory that the job saves its checkpoints in, which the job of a scenario tells"
    needs = ("mounts",)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Take the mount away again."""
        directory = directory_of(victims[0])
        return [unmount_step(fault, directory, f"unmount what hides {directory}")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Mount a removed directory over it. A second victim in it changes nothing more."""
        directory = directory_of(victim)
        directory.mkdir(parents=True, exist_ok=True)
        mount = top_mount(job, victim)
        if mount is not None and mount.removed:
            return
        try:
            mount_removed(directory)
        except OSError as error:
            raise FaultMissed(f"{directory} cannot be made to vanish: {error}") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rank's process sees a directory that has been removed, and the kernel refuses a file there."""
        mount = top_mount(job, victim)
        if mount is None or not mount.removed:
            return None
        refused = refusal_of_name(victim)
        return shown(mount, refused) if refused == "ENOENT" else None


KIND = StorageGone()
