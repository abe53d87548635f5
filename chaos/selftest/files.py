"""Changes by defects to the files of a run other than its history: move, remove, copy, change lines."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from chaos.base.walking import MAX_LEVELS
from chaos.selftest.defect import Mutate, NothingToMutate

SDK_LOG = "logs/train/ttp/ttp_log.log.*"
"""The logs of the SDK in the first launch."""


def moved(source: str, target: str) -> Mutate:
    """Return a mutation that renames a file or directory of the run."""

    def mutate(run_dir: Path) -> None:
        destination = run_dir / target
        destination.parent.mkdir(parents=True, exist_ok=True)
        _only_path(run_dir, source).rename(destination)

    return mutate


def copied(source: str, target: str) -> Mutate:
    """Return a mutation that copies a file or directory of the run."""

    def mutate(run_dir: Path) -> None:
        path, destination = _only_path(run_dir, source), run_dir / target
        destination.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, destination)
        else:
            shutil.copy2(path, destination)

    return mutate


def removed(pattern: str) -> Mutate:
    """Return a mutation that removes the files and directories that match."""

    def mutate(run_dir: Path) -> None:
        paths = sorted(run_dir.glob(pattern))
        if not paths:
            raise NothingToMutate(f"there is no {pattern}")
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return mutate


def rewritten(pattern: str, change: Callable[[bytes], bytes]) -> Mutate:
    """Return a mutation that changes the bytes of the files that match; at least one must change."""

    def mutate(run_dir: Path) -> None:
        changed = 0
        for path in sorted(run_dir.glob(pattern)):
            before = path.read_bytes()
            after = change(before)
            path.write_bytes(after)
            changed += after != before
        if not changed:
            raise NothingToMutate(f"nothing in {pattern} is changed")

    return mutate


def line_changed(pattern: str, old: str, new: str) -> Mutate:
    """Return a mutation that replaces a text, a regular expression, in the lines of the logs that match."""
    expression = re.compile(old.encode())
    return rewritten(pattern, lambda text: expression.sub(new.encode(), text))


def line_doubled(pattern: str, text: str) -> Mutate:
    """Return a mutation that writes the lines with ``text`` a second time."""

    def change(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        return b"".join(line * 2 if text.encode() in line else line for line in lines)

    return rewritten(pattern, change)


def buried(place: str) -> Mutate:
    """Return a mutation that makes nested directories in the run, so deep that no search reaches the last.

    So its content is unknown. Rights would not do, since there are users that may read everything.
    """

    def mutate(run_dir: Path) -> None:
        if not (run_dir / place).is_dir():
            raise NothingToMutate(f"there is no {place}")
        run_dir.joinpath(place, *["deeper"] * (MAX_LEVELS + 2)).mkdir(parents=True)

    return mutate


def _only_path(run_dir: Path, pattern: str) -> Path:
    paths = sorted(run_dir.glob(pattern))
    if len(paths) != 1:
        raise NothingToMutate(f"{pattern} is there {len(paths)} times")
    return paths[0]
