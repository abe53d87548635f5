"""Checkpoints as a job saves them: two of each of two ranks."""

from __future__ import annotations

from pathlib import Path

from tests.unit.faults.test_damaging_checkpoints import NEWEST, OLDER, content


def save(directory: Path) -> None:
    """Save those of steps 4 and 8 of ranks 0 and 1."""
    for rank in (0, 1):
        (directory / f"rank_{rank}").mkdir(parents=True)
        for name, step in ((OLDER, 4), (NEWEST, 8)):
            (directory / f"rank_{rank}" / name).write_bytes(content(step))
            (directory / f"rank_{rank}" / name).chmod(0o640)
