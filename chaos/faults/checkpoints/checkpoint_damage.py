"""The common part of faults that damage a checkpoint: the file, its kept original, the evidence.

The file is of the newest checkpoint that the rank has finished, by the step that is stored in it. The original is kept
in the run's directory before the file with its name is replaced, in one act; mode and times stay, as damage on a disk
leaves them. The original is put back when the run is torn down, not before: the next launch is to meet the damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.base.walking import entries_below, raise_too_deep
from chaos.faults.checkpoints.checkpoint_parts import Hit, part_of
from chaos.faults.checkpoints.file_content import ABSENT, digest_file, digest_of, duplicate, replace_content
from chaos.faults.checkpoints.saved_files import (
    counts_every_step,
    finished,
    recorded_step,
    run_of,
    storage_of,
    stored_step,
)
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.storage.storage import FROM_START
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.mindformers_layout import ITERATION
from chaos.observe.checkpoints.mindformers_records import COMMON, META, TRACKER, read_common, read_meta
from chaos.observe.checkpoints.registered import is_part
from chaos.observe.checkpoints.tracked_layouts import layout_beside, read_tracked
from chaos.plan.checkpoints.saved import MODEL
from chaos.plan.job_effect import DAMAGED, JobEffect

RESTORE = "restore-checkpoint"
"""The undo action (chaos.faults.checkpoints.undo)."""

KEPT = "damaged"
"""The run's directory for the originals."""


Check = Callable[[Hit, Victim], None]
"""A check just before the file is hit. Raises FaultMissed where the file is to be left alone."""

Change = Callable[[Hit, Victim], "Iterable[bytes] | None"]
"""The new content of the file, piece by piece; None where the file is taken away.

Raises FaultMissed where there is none.
"""


@dataclass(frozen=True)
class Damage(FaultKind):
    """Replaces the content of a rank's newest checkpoint; its name, mode and times stay.

    Where a checkpoint is several files, the parameter ``part`` of faults that hit one file selects it: ``model`` (the
    default), in MindFormers' new layout ``optimizer``, ``common.json`` or ``metadata.json``, and in a directory of
    PyTorch's distributed checkpoints ``.metadata``. ``find`` finds another file to hit. ``stale`` says that the content
    is the rank's older file, which the evidence then names.
    """

    name: str
    about: str
    change: Change
    find: Callable[[Victim], Hit] | None = None
    stale: bool = False
    check: Check = lambda hit, victim: None
    """A check whether the file may be hit: another one may have been put there since it was found."""
    effect: JobEffect = DAMAGED

    needs_from_start = FROM_START
    surface = "files"

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Put the original back, unless the job has saved another file there. Raises FaultMissed without a file."""
        return [self._undo_step(fault, victim) for victim in victims]

    def _undo_step(self, fault: str, victim: Victim) -> UndoStep:
        hit = (self.find or newest)(victim)
        before, after = digest_file(hit.path), digest_of(self.change(hit, victim))
        if before == after:
            raise FaultMissed(f"rank {victim.rank}: {hit.path} has nothing that could be changed")
        arguments = {
            "path": str(hit.path),
            "kept": str(kept_place(victim, hit.path)),
            "before": before,
            "after": after,
        }
        # ``about`` describes the damage: "cut off in the middle".
        note = f"{hit.path} of rank {victim.rank} is {self.about}; its original is kept in {arguments['kept']}"
        return UndoStep(f"{fault}-rank-{victim.rank}", fault, RESTORE, arguments, note)

    def inject(self, job: Job, victim: Victim) -> None:
        """Keep the original, then put the damaged content in its place."""
        del job
        hit = (self.find or newest)(victim)
        kept = kept_place(victim, hit.path)
        if os.path.lexists(_kept_of(victim)):
            raise FaultMissed(f"rank {victim.rank}: fault {victim.fault} has hit a checkpoint before")
        keep(hit.path, kept)
        content = self.change(replace(hit, path=kept, place=hit.path), victim)
        if content is None:
            self.check(hit, victim)
            hit.path.unlink()
        else:
            replace_content(hit.path, content, lambda: self.check(hit, victim))

    def left_at(self, path: Path) -> Path:
        """Return the file's place afterwards, if it has one."""
        return path

    def in_running_job(self) -> FaultKind | None:
        """Return the kind for a checkpoint of a job that runs already; None where it hits something else."""
        from chaos.faults.checkpoints.running_checkpoint import in_running_jobs

        return None if self.find is not None else in_running_jobs(self)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the differing digests of the original and of the file in its place."""
        del job
        original = kept_file(victim)
        if original is None:
            return None
        kept, path = original
        there = os.path.lexists(path)
        before, after = digest_file(kept), digest_file(path) if there else ABSENT
        if before == after:
            return None
        step = kept_step(kept, path, victim)
        evidence = {
            "signal": None,
            "file": shown(victim, path),
            "step": step,
            "before": before,
            "after": after,
            "bytes": [kept.stat().st_size, path.stat().st_size if there else 0],
        }
        # Another file of a directory that is one checkpoint is no older checkpoint: the directory is of two saves.
        whole = _part(victim) == MODEL and not is_part(path.name)
        older = older_than(victim, step, path) if self.stale and whole else None
        return evidence if older is None or digest_file(older) != after else evidence | {"older": shown(victim, older)}


def newest(victim: Victim) -> Hit:
    """Return the part to be hit of the rank's newest finished checkpoint.

    Files that cannot be read are passed over, and so are links. Raises FaultMissed when there is no checkpoint, or the
    job kind does not say where its jobs save.
    """
    checkpoints = finished(victim)
    if not checkpoints:
        raise FaultMissed(f"rank {victim.rank} has no checkpoint below {storage_of(victim)} that could be damaged")
    step, path = checkpoints[-1]
    older = next((other for earlier, other in reversed(checkpoints) if earlier < step), None)
    return part_of(Hit(path, step, older), _part(victim), victim.rank)


def _part(victim: Victim) -> object:
    return victim.parameters.get("part", MODEL)


def older_than(victim: Victim, step: int | None, path: Path) -> Path | None:
    """Return the rank's newest finished checkpoint of an earlier step, other than ``path``; None without one."""
    older = [other for earlier, other in finished(victim) if step is not None and earlier < step and other != path]
    return older[-1] if older else None


def kept_step(kept: Path, path: Path, victim: Victim) -> int | None:
    """Return the step stored in the kept original of a file.

    In MindFormers' new layout the step is in ``common.json``, which is still beside the file's own place; a record
    names the step, or the file that has it. A part of a directory that is one checkpoint does not hold it alone: the
    rank's own record of the save has it.
    """
    try:
        if path.name == TRACKER:
            return _tracked(kept, path)
        if is_part(path.name):
            return recorded_step(victim, path)
        if path.name == META:
            return stored_step(path.with_name(read_meta(kept).file))
        if ITERATION.fullmatch(path.parent.name):
            return read_common(kept if path.name == COMMON else path.with_name(COMMON)).step
    except CheckpointError:
        return None
    return stored_step(kept, recorded_step(victim, path), counts_every_step=counts_every_step(victim))


def _tracked(kept: Path, path: Path) -> int | None:
    """Return the step that a tracker names, by the layout of the saves beside its own place. Raises CheckpointError."""
    layout = layout_beside(path)
    tracked = None if layout is None else read_tracked(kept, layout)
    return tracked if isinstance(tracked, int) else None


def kept_place(victim: Victim, path: Path) -> Path:
    """Return the place of a file's kept original: beside the run's history, by fault and rank, under its own path."""
    return _kept_of(victim) / path.relative_to(storage_of(victim))


def kept_file(victim: Victim) -> tuple[Path, Path] | None:
    """Return the kept original for this fault and rank, and its place in the job; None as long as there is none."""
    files = [
        path for path in entries_below(_kept_of(victim), raise_too_deep) if path.is_file() and not path.is_symlink()
    ]
    return (files[0], storage_of(victim) / files[0].relative_to(_kept_of(victim))) if len(files) == 1 else None


def shown(victim: Victim, path: Path) -> str:
    """Return a file as the evidence names it: its path below the job's save directory."""
    return path.relative_to(storage_of(victim)).as_posix()


def _kept_of(victim: Victim) -> Path:
    return run_of(victim) / KEPT / victim.fault / f"rank_{victim.rank}"


def keep(path: Path, kept: Path) -> None:
    """Keep a file under another name; on the same file system it is the same file, so nothing is copied."""
    kept.parent.mkdir(parents=True)
    duplicate(path, kept)
