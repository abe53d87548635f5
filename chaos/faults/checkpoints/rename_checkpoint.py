"""``rename-checkpoint``: gives a rank's newest checkpoint the name of a later step, which no rank has reached.

Jobs that read the stored step are not misled.

On Ascend: files copied by hand, or names that count anew after a recovery.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.faults.checkpoints.checkpoint_damage import (
    RESTORE,
    Check,
    keep,
    kept_file,
    kept_place,
    kept_step,
    newest,
    shown,
)
from chaos.faults.checkpoints.checkpoint_parts import Hit
from chaos.faults.checkpoints.file_content import digest_file
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.storage.storage import FROM_START
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.observe.checkpoints.registered import is_part
from chaos.plan.job_effect import RENAMED

_STEP_IN_NAME = re.compile(r"(?P<epoch>-\d+_)(?P<step>\d+)(?=\.(?:ckpt|safetensors)$)")
_LAST_NUMBER = re.compile(r"(?P<step>\d+)(?=\D*\.[a-z]+$)")
"""The step in a name that a script has chosen, as in ``step-8.pt``."""


@dataclass(frozen=True)
class RenameCheckpoint(FaultKind):
    """Adds the file's own step to the step in its name, so the name is of a step that no rank has reached."""

    find: Callable[[Victim], Hit] = newest
    """A search as in :class:`chaos.faults.checkpoints.checkpoint_damage.Damage`, as is ``check``."""
    check: Check = lambda hit, victim: None

    name = "rename-checkpoint"
    surface = "files"
    effect = RENAMED
    needs_from_start = FROM_START

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Give the file its name back, unless the job has saved another one under it."""
        steps = []
        for victim in victims:
            path = self.find(victim).path
            arguments = {
                "path": str(path),
                "moved": str(other_name(path)),
                "kept": str(kept_place(victim, path)),
                "before": digest_file(path),
                "after": digest_file(path),
            }
            note = f"{path} of rank {victim.rank} is called {other_name(path).name}"
            steps.append(UndoStep(f"{fault}-rank-{victim.rank}", fault, RESTORE, arguments, note))
        return steps

    def inject(self, job: Job, victim: Victim) -> None:
        """Rename the file, in one act."""
        del job
        hit = self.find(victim)
        path = hit.path
        if kept_file(victim) is not None:
            raise FaultMissed(f"rank {victim.rank}: fault {victim.fault} has hit a checkpoint before")
        if os.path.lexists(other_name(path)):
            raise FaultMissed(f"{path} cannot be called {other_name(path).name}: there is such a file")
        keep(path, kept_place(victim, path))
        self.check(hit, victim)
        path.rename(other_name(path))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the missing old name, and the same content under the new name."""
        del job
        original = kept_file(victim)
        if original is None:
            return None
        kept, path = original
        moved = other_name(path)
        if os.path.lexists(path) or not moved.is_file():
            return None
        return {
            "signal": None,
            "file": shown(victim, path),
            "renamed": shown(victim, moved),
            "step": kept_step(kept, path, victim),
            "before": digest_file(kept),
            "after": digest_file(moved),
        }

    def left_at(self, path: Path) -> Path:
        """Return the file's place afterwards."""
        return other_name(path)

    def in_running_job(self) -> FaultKind | None:
        """Return the kind for a checkpoint of a job that runs already."""
        from chaos.faults.checkpoints.running_checkpoint import in_running_jobs

        return in_running_jobs(self)


def other_name(path: Path) -> Path:
    """Return the path with twice the step in its name. Raises FaultMissed where there is no step in it."""
    name, count = _STEP_IN_NAME.subn(lambda match: f"{match['epoch']}{2 * int(match['step'])}", path.name)
    if not count and not path.name.endswith((".ckpt", ".safetensors")) and not is_part(path.name):
        name, count = _LAST_NUMBER.subn(_doubled, path.name)
    if not count or name == path.name:
        raise FaultMissed(f"the name of {path} holds no step")
    return path.with_name(name)


def _doubled(match: re.Match[str]) -> str:
    """Return twice a number, in as many digits at least."""
    return str(2 * int(match["step"])).zfill(len(match["step"]))


KIND = RenameCheckpoint()
