"""The saved checkpoints of a job that is about to be started again, or whose ranks its launcher has started again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import DAMAGE_MET
from chaos.evidence.checkpoints.owner import REMEMBERED, owners_of
from chaos.evidence.checkpoints.periodic import is_saved
from chaos.evidence.checkpoints.saved import SavedKind
from chaos.evidence.facts import RESUME, TRAIN
from chaos.faults.checkpoints.originals import damaged_files, digest_there, state_as_saved
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.observe.checkpoints.checkpoint import CheckpointError


def record_damage_within(run_dir: Path, storage: Path | None, history: HistoryWriter) -> None:
    """Record the same before the first new process within a launch reads a checkpoint; once for each damaged file."""
    record_damage(run_dir, storage or run_dir / "job", history, attempt=TRAIN, once=True)


def record_damage(
    run_dir: Path, storage: Path, history: HistoryWriter, *, attempt: str = RESUME, once: bool = False
) -> None:
    """Record what lies in place of each damaged checkpoint; ``storage`` is the directory that the job saves in."""
    recorded = read_history(run_dir / "history")
    for file in damaged_files(run_dir, recorded):
        if once and recorded.first(DAMAGE_MET, attempt=attempt, rank=file.rank, fault=file.fault) is not None:
            continue
        try:
            content: dict[str, Any] = {"content": digest_there(storage / file.name)}
        except OSError as error:
            content = {"problem": f"{file.name}: {error.strerror}"}
        history.record(DAMAGE_MET, attempt=attempt, rank=file.rank, fault=file.fault, file=file.file, **content)


def look_at_saves(run_dir: Path, kind: SavedKind, history: HistoryWriter) -> bool:
    """Return whether the job has saved a checkpoint of this kind to its end, under any name and in any place.

    The content of a file whose name does not tell its step is recorded: the job may save the file anew under the same
    name (``latest.ckpt``), and its starting point no longer exists when the run is judged. Of a damaged file it is the
    content as it was saved, with which a state that was loaded is compared. A file in a place that cannot be read does
    not count; the checks say so about the run.
    """
    recorded, artifacts = read_history(run_dir / "history"), Artifacts(run_dir, None)
    damaged = list(damaged_files(run_dir, recorded))
    named = {checkpoint.path for checkpoint in artifacts.checkpoints}
    files = owners_of(recorded, artifacts)
    paths = [*(checkpoint.path for checkpoint in files.owned), *(file.path for file in files.unowned)]
    for path in dict.fromkeys(candidate for candidate in paths if candidate not in named):
        where = artifacts.relative(path)
        try:
            state = state_as_saved(path, run_dir, damaged) or artifacts.read_checkpoint(path)
            history.record(REMEMBERED, attempt=RESUME, path=where, state=asdict(state))
        except CheckpointError as error:
            history.record(REMEMBERED, attempt=RESUME, path=where, problem=error.problem)
    by_name = (checkpoint.kind in (kind, "either") and not checkpoint.temporary for checkpoint in artifacts.checkpoints)
    return any(by_name) or is_saved(recorded, artifacts, kind)
