"""``lose-checkpoint``: removes the checkpoints of a rank, with their directory; the run keeps the files.

On Ascend: the local disk of a node that does not come back.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.storage.storage import FROM_START
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import LOST_FILES

KEPT = "lost"
"""The run's directory for files that are lost to the job."""


class LoseCheckpoint(FaultKind):
    """Takes the rank's own directory out of the job's checkpoint directory."""

    name = "lose-checkpoint"
    surface = "files"
    effect = LOST_FILES
    needs_from_start = FROM_START

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return a note of the files' new place; they are not put back."""
        return [
            UndoStep(
                f"{fault}-rank-{victim.rank}",
                fault,
                "note-kept",
                {"path": str(kept_place(victim))},
                f"what rank {victim.rank} had saved is kept in {kept_place(victim)}",
            )
            for victim in victims
        ]

    def inject(self, job: Job, victim: Victim) -> None:
        """Move the directory away, in one act. Raises FaultMissed when the rank has saved nothing."""
        del job
        directory, kept = rank_directory(victim), kept_place(victim)
        if kept.exists() or not _files(directory):
            raise FaultMissed(f"rank {victim.rank} has nothing to lose: no checkpoint in {directory}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        directory.rename(kept)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the missing directory, and its files where they are kept."""
        del job
        if os.path.lexists(rank_directory(victim)):
            return None
        return {"signal": None, "removed": _files(kept_place(victim)), "directory": rank_directory(victim).name}


def rank_directory(victim: Victim) -> Path:
    """Return the rank's save directory. Raises FaultMissed when the job kind does not say where its jobs save."""
    if victim.storage is None:
        raise FaultMissed("this kind of job does not say in which directory it saves its checkpoints")
    return victim.storage / f"rank_{victim.rank}"


def kept_place(victim: Victim) -> Path:
    """Return the place where the files are kept: beside the run's history."""
    return victim.record.parent.parent / KEPT / f"rank_{victim.rank}"


def _files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*") if path.is_file())


KIND = LoseCheckpoint()
