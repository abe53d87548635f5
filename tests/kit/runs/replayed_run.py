"""A recorded run that is made to happen again, line by line, in another directory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.oracle.archive import read_archive
from tests.oracle.recorded_runs import archive_of

Line = tuple[int, int, str, bytes]
"""A line of a history: its monotonic and its wall time, the name of its file, and the line."""


def recorded(name: str, place: Path) -> Path:
    """Unpack a recorded run."""
    read_archive(archive_of(name), place)
    return place


def lines(run: Path) -> list[Line]:
    """Return the lines of all files of the run's history in order of time."""
    found = []
    for path in sorted((run / "history").glob("*.jsonl")):
        for line in path.read_bytes().rstrip(b"\0").splitlines(keepends=True):
            event = json.loads(line)
            found.append((event["mono"], event["wall"], path.name, line))
    return sorted(found, key=lambda line: line[0])


def begun(run: Path, place: Path) -> Path:
    """Return a copy of the run as it is before anything is recorded."""
    place.mkdir()
    for name in ("run.json", "plan.json"):
        shutil.copy(run / name, place)
    for name in ("baseline", "logs"):
        if (run / name).is_dir():
            shutil.copytree(run / name, place / name)
    (place / "history").mkdir()
    return place


def replayed(run: Path, place: Path, parts: int) -> Iterator[int]:
    """Record the run again in ``place``, in so many parts; yield the wall time after each."""
    every = lines(run)
    size = -(-len(every) // parts)
    for first in range(0, len(every), size):
        for _, _, name, line in every[first : first + size]:
            with (place / "history" / name).open("ab") as file:
                file.write(line)
        yield max(wall for _, wall, _, _ in every[: first + size])
    shutil.copy(run / "result.json", place)
