"""The kept part of a run: all of it, except that checkpoint files over a limit are reduced to digests."""

from __future__ import annotations

from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import kept_of
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.observe.checkpoints.layout import DIGESTED, find_checkpoints
from chaos.observe.checkpoints.mindformers_state import part_files
from chaos.observe.checkpoints.saved_state import keep_digests


def keep_digests_only(run_dir: Path, limit_mb: int, history: HistoryWriter) -> None:
    """Replace every checkpoint file larger than ``limit_mb`` (10⁶ bytes) by its digests, and record that.

    Checkpoints are known by their names, or by the ranks' records of their saves. A file in a place that cannot be read
    stays as it is.
    """
    large = {
        path: size
        for path in _saved(run_dir)
        if (size := sum(file.stat().st_size for file in part_files(path))) > limit_mb * 1_000_000
    }
    for kept, size in zip(keep_digests(list(large)), large.values(), strict=True):
        history.record("checkpoint.digested", path=str(kept.relative_to(run_dir)), bytes=size)


def _saved(run_dir: Path) -> list[Path]:
    """Return the checkpoint files that are no digests yet."""
    named = find_checkpoints(run_dir / "job", unseen=None)
    paths = {checkpoint.path for checkpoint in named if checkpoint.path == checkpoint.saved_as}
    beside = {part for path in paths for part in part_files(path)}
    artifacts = Artifacts(run_dir, None)
    saves = read_history(run_dir / "history").select("checkpoint.end")
    recorded = {path for save in saves if (path := kept_of(save, artifacts)) is not None}
    return sorted(paths | {path for path in recorded - beside if not path.name.endswith(DIGESTED)})
