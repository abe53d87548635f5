"""The kept part of a run: all of it, except that checkpoint files over a limit are reduced to digests."""

from __future__ import annotations

from pathlib import Path

from chaos.history.writer import HistoryWriter
from chaos.observe.checkpoints.layout import find_checkpoints
from chaos.observe.checkpoints.mindformers_state import part_files
from chaos.observe.checkpoints.saved_state import keep_digests


def keep_digests_only(run_dir: Path, limit_mb: int, history: HistoryWriter) -> None:
    """Replace every checkpoint file larger than ``limit_mb`` (10⁶ bytes) by its digests, and record that.

    A file in a place that cannot be read stays as it is.
    """
    large = {
        checkpoint.path: size
        for checkpoint in find_checkpoints(run_dir / "job", unseen=None)
        if (size := sum(file.stat().st_size for file in part_files(checkpoint.path))) > limit_mb * 1_000_000
        and checkpoint.path == checkpoint.saved_as
    }
    for kept, size in zip(keep_digests(list(large)), large.values(), strict=True):
        history.record("checkpoint.digested", path=str(kept.relative_to(run_dir)), bytes=size)
