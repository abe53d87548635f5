"""``io-error``: answers every access to the checkpoint storage with EIO.

Before the job starts the directory becomes a disk of its own (a file). Saved files stay.

On Ascend: a failed disk, or a server that is gone.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage.own_disk import OnOwnDisk, own_mount
from chaos.faults.storage.storage import directory_of, refusal, shown
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.disk_image import shut_down
from chaos.plan.job_effect import STORAGE_ERROR


class IoError(OnOwnDisk):
    """Breaks the storage."""

    name = "io-error"
    effect = STORAGE_ERROR

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step beyond the preparation's."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Take the disk from under its file system. A second victim on it changes nothing more."""
        own_mount(job, victim)
        if refusal(victim, 1) is None:
            try:
                shut_down(directory_of(victim))
            except OSError as error:
                raise FaultMissed(f"{victim.storage} cannot be made to fail: {error}") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's EIO where the rank saves."""
        mount, refused = own_mount(job, victim), refusal(victim, 1)
        return shown(mount, refused) if refused == "EIO" else None


KIND = IoError()
