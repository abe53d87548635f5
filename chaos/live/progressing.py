"""The runs of a directory of reports that a harness makes at this moment."""

from __future__ import annotations

import contextlib
from pathlib import Path

from chaos.store.directory import RUN_FILE, RUN_NAME
from chaos.store.ownership import is_live


def live_runs(reports: Path) -> list[Path]:
    """Return the directories of runs whose harness lives, the newest first. A fault-free run comes before its run."""
    runs: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        for path in reports.iterdir():
            with contextlib.suppress(OSError):  # it may be removed at any moment
                if RUN_NAME.fullmatch(path.name) and not path.is_symlink() and is_live(path):
                    runs.append(((path / RUN_FILE).lstat().st_ctime, path))
    return [path for _, path in sorted(runs, reverse=True)]
