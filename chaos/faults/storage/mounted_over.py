"""The common part of faults that mount something over the directory that a job saves in, and so change it."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.storage.storage import FROM_START, directory_of, top_mount, unmount_step
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import Mount


class MountedOver(FaultKind):
    """A fault kind by one mount, for all ranks that save there. ``makes`` says in a word what the directory becomes."""

    surface = "mounts"
    needs_from_start = FROM_START
    needs = ("mounts",)
    makes: str

    @abstractmethod
    def mount(self, directory: Path) -> None:
        """Mount it over the directory. Raises OSError."""

    @abstractmethod
    def in_force(self, mount: Mount | None) -> bool:
        """Return whether the mount there is the fault's."""

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Remove the mount."""
        directory = directory_of(victims[0])
        return [unmount_step(fault, directory, f"unmount what makes {directory} {self.makes}")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Mount it, once: a second victim that saves there changes nothing more."""
        directory = directory_of(victim)
        directory.mkdir(parents=True, exist_ok=True)
        if self.in_force(top_mount(job, victim)):
            return
        try:
            self.mount(directory)
        except OSError as error:
            raise FaultMissed(f"nothing can be mounted that makes {directory} {self.makes}: {error}") from error
