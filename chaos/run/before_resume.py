"""The saved checkpoints of a job that is about to be started again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import REMEMBERED
from chaos.evidence.checkpoints.owner import owners_of
from chaos.evidence.checkpoints.periodic import is_saved
from chaos.evidence.checkpoints.saved import SavedKind
from chaos.evidence.facts import RESUME
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.observe.checkpoints.checkpoint import CheckpointError


def look_at_saves(run_dir: Path, kind: SavedKind, history: HistoryWriter) -> bool:
    """Return whether the job has saved a checkpoint of this kind to its end, under any name and in any place.

    The content of a file whose name does not tell its step is recorded: the job may save the file anew under the same
    name (``latest.ckpt``), and its starting point no longer exists when the run is judged. A file in a place that
    cannot be read does not count; the checks say so about the run.
    """
    recorded, artifacts = read_history(run_dir / "history"), Artifacts(run_dir, None)
    named = {checkpoint.path for checkpoint in artifacts.checkpoints}
    files = owners_of(recorded, artifacts)
    paths = [*(checkpoint.path for checkpoint in files.owned), *(file.path for file in files.unowned)]
    for path in dict.fromkeys(candidate for candidate in paths if candidate not in named):
        where = artifacts.relative(path)
        try:
            history.record(REMEMBERED, attempt=RESUME, path=where, state=asdict(artifacts.read_checkpoint(path)))
        except CheckpointError as error:
            history.record(REMEMBERED, attempt=RESUME, path=where, problem=error.problem)
    by_name = (checkpoint.kind in (kind, "either") and not checkpoint.temporary for checkpoint in artifacts.checkpoints)
    return any(by_name) or is_saved(recorded, artifacts, kind)
