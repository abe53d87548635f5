"""The lines around each piece of evidence, so that the page shows them without the run's directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from chaos.base.plain_files import open_plain
from chaos.evidence.text import readable
from chaos.report.page.model import Excerpt

AROUND = 4
"""Lines before and after a line that is quoted."""
MOST = 120
"""Excerpts of a page."""
_LONGEST = 400
_FARTHEST = 2_000_000
"""Lines of a file that are passed over on the way to an excerpt."""
_PLACE = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>[1-9][0-9]{0,8})")


class Excerpts:
    """Reads lines of the run's files, each place once. A file that is not a plain one below the run is left out."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._keys: dict[str, str | None] = {}
        self.excerpts: dict[str, Excerpt] = {}

    def key(self, place: str) -> str | None:
        """Return the key of the lines at a place such as ``logs/train/worker_0.log:12``; None where there are none."""
        if place not in self._keys:
            excerpt = self._read(place) if len(self.excerpts) < MOST else None
            key = f"e{len(self.excerpts) + 1}" if excerpt is not None else None
            if key is not None and excerpt is not None:
                self.excerpts[key] = excerpt
            self._keys[place] = key
        return self._keys[place]

    def _read(self, place: str) -> Excerpt | None:
        match = _PLACE.fullmatch(place)
        if match is None:
            return None
        path = PurePosixPath(match["file"])
        if path.is_absolute() or ".." in path.parts:
            return None
        line = int(match["line"])
        try:
            lines = self._lines(self._run_dir.joinpath(*path.parts), line)
        except (OSError, ValueError):  # a name may hold what no path can
            return None
        if not lines:
            return None
        return Excerpt(path.as_posix(), max(1, line - AROUND), (line,), tuple(lines))

    def _lines(self, path: Path, line: int) -> list[str]:
        if line > _FARTHEST or not path.resolve().is_relative_to(self._run_dir.resolve()):
            return []
        lines = []
        with open_plain(path) as file:
            for number in range(1, line + AROUND + 1):
                raw = file.readline(1 << 20)
                if not raw:
                    break
                if number >= line - AROUND:
                    lines.append(shown(raw.decode("utf-8", "replace")))
        return lines if len(lines) > min(AROUND, line - 1) else []


def shown(line: str) -> str:
    """Return a line as a page shows it: fit to be shown, without its end, and cut off where it is too long."""
    text = readable(line.rstrip("\r\n\0"))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def scenario_line(places: Iterable[str]) -> int | None:
    """Return the line of the scenario among the places of a statement."""
    for place in places:
        match = _PLACE.fullmatch(place)
        if match is not None and match["file"] == "scenario.yaml":
            return int(match["line"])
    return None
