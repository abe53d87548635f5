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
_AROUND_QUOTED = 80
"""Characters before and after a text that is quoted from behind the cut of a long line."""
_FARTHEST = 2_000_000
"""Lines of a file that are passed over on the way to an excerpt."""
_PLACE = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>[1-9][0-9]{0,8})")


class Excerpts:
    """Reads lines of the run's files, each place once. A file that is not a plain one below the run is left out."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._keys: dict[tuple[str, tuple[str, ...]], str | None] = {}
        self.excerpts: dict[str, Excerpt] = {}

    def key(self, place: str, quoted: tuple[str, ...] = ()) -> str | None:
        """Return the key of the lines at a place such as ``logs/train/worker_0.log:12``; None where there are none.

        A line that is cut off keeps the texts ``quoted``, as far as it has them.
        """
        asked = place, quoted
        if asked not in self._keys:
            self._keys[asked] = self._add(place, quoted) if len(self.excerpts) < MOST else None
        return self._keys[asked]

    def _add(self, place: str, quoted: tuple[str, ...]) -> str | None:
        excerpt = self._read(place, quoted)
        if excerpt is None:
            return None
        for key, other in self.excerpts.items():
            if other == excerpt:
                return key
        key = f"e{len(self.excerpts) + 1}"
        self.excerpts[key] = excerpt
        return key

    def _read(self, place: str, quoted: tuple[str, ...]) -> Excerpt | None:
        match = _PLACE.fullmatch(place)
        if match is None:
            return None
        path = PurePosixPath(match["file"])
        if path.is_absolute() or ".." in path.parts:
            return None
        line = int(match["line"])
        try:
            lines = self._lines(self._run_dir.joinpath(*path.parts), line, quoted)
        except (OSError, ValueError):  # a name may hold what no path can
            return None
        if not lines:
            return None
        return Excerpt(path.as_posix(), max(1, line - AROUND), (line,), tuple(lines))

    def _lines(self, path: Path, line: int, quoted: tuple[str, ...]) -> list[str]:
        if line > _FARTHEST or not path.resolve().is_relative_to(self._run_dir.resolve()):
            return []
        lines = []
        with open_plain(path) as file:
            for number in range(1, line + AROUND + 1):
                raw = file.readline(1 << 20)
                if not raw:
                    break
                if number >= line - AROUND:
                    lines.append(shown(raw.decode("utf-8", "replace"), quoted if number == line else ()))
        return lines if len(lines) > min(AROUND, line - 1) else []


def shown(line: str, quoted: Iterable[str] = ()) -> str:
    """Return a line as a page shows it: fit to be shown, without its end, and cut off where it is too long.

    Behind the cut the first occurrences of the texts ``quoted`` stay, with what stands around them.
    """
    text = readable(line.rstrip("\r\n\0"))
    if len(text) <= _LONGEST:
        return text
    parts, end = [text[:_LONGEST]], _LONGEST
    for begin, length in sorted((text.find(part), len(part)) for part in map(readable, quoted) if part):
        if begin >= 0 and begin + length > end:
            since, end = max(begin - _AROUND_QUOTED, end), begin + length + _AROUND_QUOTED
            parts.append(text[since : min(end, since + _LONGEST)])
    return f"{'… '.join(parts)}… ({len(text):,} characters)"


def scenario_line(places: Iterable[str]) -> int | None:
    """Return the line of the scenario among the places of a statement."""
    for place in places:
        match = _PLACE.fullmatch(place)
        if match is not None and match["file"] == "scenario.yaml":
            return int(match["line"])
    return None
