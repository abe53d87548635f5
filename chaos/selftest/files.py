"""Changes by defects to the files of a run other than its history: move, remove, copy, change lines."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from chaos.base.walking import MAX_LEVELS
from chaos.selftest.defect import Spoil, Unspoilt


def moved(source: str, target: str) -> Spoil:
    """Return a spoil that renames a file or directory of the run."""

    def spoil(run_dir: Path) -> None:
        destination = run_dir / target
        destination.parent.mkdir(parents=True, exist_ok=True)
        _one(run_dir, source).rename(destination)

    return spoil


def copied(source: str, target: str) -> Spoil:
    """Return a spoil that copies a file or directory of the run."""

    def spoil(run_dir: Path) -> None:
        path, destination = _one(run_dir, source), run_dir / target
        destination.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, destination)
        else:
            shutil.copy2(path, destination)

    return spoil


def removed(pattern: str) -> Spoil:
    """Return a spoil that removes the files and directories that match."""

    def spoil(run_dir: Path) -> None:
        paths = sorted(run_dir.glob(pattern))
        if not paths:
            raise Unspoilt(f"there is no {pattern}")
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return spoil


def rewritten(pattern: str, change: Callable[[bytes], bytes]) -> Spoil:
    """Return a spoil that changes the bytes of the files that match; at least one must change."""

    def spoil(run_dir: Path) -> None:
        changed = 0
        for path in sorted(run_dir.glob(pattern)):
            before = path.read_bytes()
            after = change(before)
            path.write_bytes(after)
            changed += after != before
        if not changed:
            raise Unspoilt(f"nothing in {pattern} is changed")

    return spoil


def line_changed(pattern: str, old: str, new: str) -> Spoil:
    """Return a spoil that replaces a text, a regular expression, in the lines of the logs that match."""
    expression = re.compile(old.encode())
    return rewritten(pattern, lambda text: expression.sub(new.encode(), text))


def line_doubled(pattern: str, text: str) -> Spoil:
    """Return a spoil that writes the lines with ``text`` a second time."""

    def change(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        return b"".join(line * 2 if text.encode() in line else line for line in lines)

    return rewritten(pattern, change)


def buried(place: str) -> Spoil:
    """Return a spoil that makes nested directories in the run, so deep that no search reaches the last.

    So its content is unknown. Rights would not do, since there are users that may read everything.
    """

    def spoil(run_dir: Path) -> None:
        if not (run_dir / place).is_dir():
            raise Unspoilt(f"there is no {place}")
        run_dir.joinpath(place, *["deeper"] * (MAX_LEVELS + 2)).mkdir(parents=True)

    return spoil


def _one(run_dir: Path, pattern: str) -> Path:
    paths = sorted(run_dir.glob(pattern))
    if len(paths) != 1:
        raise Unspoilt(f"{pattern} is there {len(paths)} times")
    return paths[0]
