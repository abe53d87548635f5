"""The common part of storage faults that need a disk of the job's own: a file system in a file of the run."""

from __future__ import annotations

from pathlib import Path

from chaos.faults.behaviours import Preparing
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage.storage import directory_of, top_mount, unmount_step
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.commands import CommandError, SystemCommands
from chaos.machine.linux.disk_image import make_image, mount_image
from chaos.machine.linux.loop import is_backed_by
from chaos.machine.linux.mounts import Mount, mounts_at

BYTES = 16 << 30
"""Size of the disk. Room is taken by written files only."""


def image_of(storage: Path) -> Path:
    """Return the file of the disk that is mounted at a directory, which is beside the directory."""
    return storage.with_name(f".{storage.name}.disk")


class OnOwnDisk(Preparing):
    """The common part of all such kinds: their needs, and the disk before the job."""

    surface = "mounts"
    needs_from_start = "puts the job's checkpoints on a disk of their own, before the job starts"
    needs = ("mounts", "loop")

    def prepare_steps(self, fault: str, storage: Path) -> list[UndoStep]:
        """Remove the disk and keep its files."""
        return [unmount_step(fault, storage, f"unmount the disk at {storage} and keep its files")]

    def prepare(self, storage: Path) -> None:
        """Give the job a disk of its own to save on."""
        storage.mkdir(parents=True, exist_ok=True)
        if any(is_own(mount, storage) for mount in mounts_at(storage)):  # another fault has prepared it
            return
        try:
            make_image(image_of(storage), BYTES, SystemCommands())
        except CommandError as error:
            raise OSError(str(error)) from error
        mount_image(image_of(storage), storage)


def is_own(mount: Mount, storage: Path) -> bool:
    """Return whether a mount is of that very disk: the kernel says that its loop device reads and writes that file."""
    return mount.type == "ext4" and is_backed_by(Path(mount.source), image_of(storage))


def own_mount(job: Job, victim: Victim) -> Mount:
    """Return the disk, as the victim's own process sees it. Raises FaultMissed when the rank does not save on one."""
    mount = top_mount(job, victim)
    if mount is None or not is_own(mount, directory_of(victim)):
        raise FaultMissed(f"rank {victim.rank} sees {mount or 'no mount'} at {victim.storage}, not a disk of its own")
    return mount
