"""The finished checkpoints of a rank, for a fault to choose from: by their names, by the rank's record, by content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from chaos.base.walking import raise_too_deep
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.damage import is_of
from chaos.evidence.checkpoints.owner import kept_of
from chaos.evidence.checkpoints.stored import COUNTER, SCRIPT, STEP, leaves_out_updates, without_counter
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.event import Event
from chaos.history.reader import read_history
from chaos.observe.checkpoints.by_content import find_by_content
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.checkpoint_error import CheckpointNotSupported
from chaos.observe.checkpoints.layout import CheckpointFile, find_checkpoints
from chaos.observe.checkpoints.registered import files_of, is_part
from chaos.observe.checkpoints.saved_state import read_saved_state

_RECORD = ".jsonl"
"""The ending of an agent's history file; a job that runs already has none."""


def storage_of(victim: Victim) -> Path:
    """Return the directory that the job saves in or, where its kind does not say which, the run's job directory.

    Raises FaultMissed where neither is known.
    """
    if victim.storage is not None:
        return victim.storage
    job = run_of(victim) / "job"
    if victim.record.suffix != _RECORD or not job.is_dir():
        raise FaultMissed("this kind of job does not say in which directory it saves its checkpoints")
    return job.resolve()


def run_of(victim: Victim) -> Path:
    """Return the run's directory: the rank's record lies in its history."""
    return victim.record.parent.parent


def finished(victim: Victim) -> list[tuple[int, Path]]:
    """Return the rank's finished checkpoints with the steps that they hold, the newest last.

    A checkpoint is the rank's by the directory or name that a known program gives it, by the rank's own record of the
    save, or, in a job that has no record, by the rank in its path. Raises chaos.base.walking.TooDeep where a newer one
    may lie deeper than the search goes, and FaultMissed where the job kind does not say where its jobs save.
    """
    root = storage_of(victim)
    steps: dict[Path, int] = {}
    counts = counts_every_step(victim)
    for file in find_checkpoints(root, raise_too_deep):
        if file.temporary or file.rank != victim.rank:
            continue
        if (step := stored_step(file.path, counts_every_step=counts)) is not None:
            steps[file.path] = step
    others = _recorded(victim) if victim.record.suffix == _RECORD else _by_content(root, victim.rank)
    for path, step in others:
        if path.is_relative_to(root):
            steps.setdefault(path, step)
    return sorted((step, path) for path, step in steps.items())


def counts_every_step(victim: Victim) -> bool:
    """Return whether the optimizer's count in a file is that of the steps, as far as the ranks have recorded.

    PyTorch's GradScaler leaves out updates; a job that runs already has no record of that.
    """
    return victim.record.suffix != _RECORD or not leaves_out_updates(read_history(victim.record.parent))


def stored_step(path: Path, recorded: int | None = None, *, counts_every_step: bool = True) -> int | None:
    """Return the step that a checkpoint holds, None if it is unreadable or holds none.

    The optimizer's ``global_step`` counts over the whole training; ``step_num``, taken where there is no other, may
    count from the last start of the job. ``recorded`` is the step of the record of the save, which counts before a
    script's own number, and for a file in an unknown format. Without ``counts_every_step`` the optimizer's count is
    behind the steps, and says nothing.
    """
    try:
        state = read_saved_state(path)
        numbers = (state if counts_every_step else without_counter(state)).numbers
    except CheckpointNotSupported:
        return recorded
    except CheckpointError:
        return None
    known = (numbers.get(COUNTER), numbers.get(STEP), recorded, numbers.get(SCRIPT))
    return next((step for step in known if step is not None), None)


def recorded_step(victim: Victim, path: Path) -> int | None:
    """Return the step of the rank's own last record of the save of a file, or of its directory; None without one.

    The file itself may be gone.
    """
    below = path.relative_to(storage_of(victim)).as_posix()
    saves = [save for save in _saves(victim) if is_of(str(save.data.get("path")), below)]
    step = saves[-1].data.get("step") if saves else None
    return step if isinstance(step, int) else None


def part_of_directory(path: Path, rank: int) -> Path:
    """Return the rank's own part of a directory that is one checkpoint, the largest; ``path`` itself elsewhere.

    Raises FaultMissed where the rank has written none.
    """
    parts = [part for part in files_of(path) if part != path]
    if not parts:
        return path
    owned = [part for part in parts if is_part(part.name, rank)]
    if not owned:
        raise FaultMissed(f"rank {rank} has written no part of {path.parent}")
    return max(owned, key=lambda part: (part.stat().st_size, part.name))


def _recorded(victim: Victim) -> Iterator[tuple[Path, int]]:
    """Yield the files that the rank has recorded, each with the step of its last save; links are left out."""
    artifacts = Artifacts(run_of(victim).resolve(), None)
    last = {path: save for save in _saves(victim) if (path := kept_of(save, artifacts)) is not None}
    counts = counts_every_step(victim)
    for path, save in last.items():
        recorded = save.data.get("step")
        step = stored_step(path, recorded if isinstance(recorded, int) else None, counts_every_step=counts)
        if step is not None:
            yield path, step


def _saves(victim: Victim) -> list[Event]:
    """Return the rank's own records of its saves, in order of time; none in a job that runs already."""
    if victim.record.suffix != _RECORD:
        return []
    return read_history(victim.record.parent).select("checkpoint.end", rank=victim.rank, kind="periodic")


def _by_content(root: Path, rank: int) -> Iterator[tuple[Path, int]]:
    found = find_by_content(root, raise_too_deep)
    # Where no file names a rank, one rank saves for all; which, the files do not tell: scripts let rank 0 do it.
    alone = rank == 0 and all(file.rank is None for file in found)
    for file in found:
        if file.rank == rank or (file.rank is None and (alone or _is_writer(file, rank))):
            with suppress(FaultMissed):
                part_of_directory(file.path, rank)
                if (step := stored_step(file.path, file.step)) is not None:
                    yield file.path, step


def _is_writer(file: CheckpointFile, rank: int) -> bool:
    """Return whether a directory that is one checkpoint has a part of this rank."""
    return any(is_part(part.name, rank) for part in files_of(file.path) if part != file.path)
