"""Problems of a scenario file: the place, the mistake, and the probable meaning."""

from __future__ import annotations

import difflib
import functools
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.base.escapes import escape

MAX_PROBLEMS = 200
"""Most problems of a file before the check ends; more would not make it clearer."""

_MAX_QUOTED = 60
_MAX_CANDIDATES = 300


@dataclass(frozen=True)
class Problem:
    """One problem at one place.

    ``line`` and ``column`` count from 1; line 0 means that the problem is not at a place in the text (an unreadable
    file, a setting of the command line). ``text`` is the offending text, ``excerpt`` the source line that holds it
    (a window of it if it is long) and ``caret`` the offset of the text in the excerpt, -1 without one.
    """

    file: str
    line: int
    column: int
    message: str
    text: str = ""
    hint: str = ""
    excerpt: str = ""
    caret: int = -1

    @property
    def place(self) -> str:
        """``file:line:column``, or only the file if the problem has no place in its text."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.message}"]
        if self.caret >= 0:
            lines.append(f"    {self.excerpt}")
            lines.append(f"    {' ' * _cells(self.excerpt[: self.caret])}{'^' * self._width()}")
        if self.hint:
            lines.append(f"    {self.hint}")
        return "\n".join(lines)

    def _width(self) -> int:
        """Return the columns of the text in the excerpt, with its quotes; 1 if it looks different there."""
        shown = self.excerpt[self.caret :]
        quoted = f"{shown[:1]}{self.text}{shown[:1]}" if shown[:1] in ("'", '"') else self.text
        return next((_cells(text) for text in (quoted, self.text) if text and shown.startswith(text)), 1)


class ScenarioError(Exception):
    """A scenario that cannot be used. ``problems`` holds all of them, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.file, problem.line, problem.column)))
        super().__init__(self.problems)

    def __str__(self) -> str:
        blocks = [str(problem) for problem in self.problems]
        if len(blocks) >= MAX_PROBLEMS:
            blocks.append(f"there may be more than these {len(blocks)} problems")
        return "\n".join(blocks)


class Problems(list[Problem]):
    """The problems found so far."""

    def append(self, problem: Problem) -> None:
        """Add a problem. Raises ScenarioError at the MAX_PROBLEMS-th."""
        super().append(problem)
        if len(self) >= MAX_PROBLEMS:
            raise ScenarioError(self)


def quote(value: object) -> str:
    """Show text from a file: in quotes, on one line, shortened, without control characters."""
    text = str(value)
    return f"'{printable(text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 3] + '...')}'"


def printable(text: str) -> str:
    """Escape characters that would move the cursor or hide themselves on a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else escape(char) for char in text)


def near_miss(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that was probably meant, None if none is near."""
    return _near_miss(word[:_MAX_QUOTED], tuple(sorted(candidates))[:_MAX_CANDIDATES])


@functools.lru_cache(maxsize=1024)
def _near_miss(word: str, candidates: tuple[str, ...]) -> str | None:
    spellings = {_plain(candidate): candidate for candidate in candidates}
    matches = difflib.get_close_matches(_plain(word), list(spellings), n=1, cutoff=0.6)
    return spellings[matches[0]] if matches else None


def suggest(word: str, candidates: Iterable[str], known: str = "known") -> str:
    """Return a hint for a word that is not among ``candidates``: the near miss, or else the list of them."""
    choices = sorted(candidates)
    if (near := near_miss(word, choices)) is not None:
        return f"did you mean '{printable(near)}'?"
    if not choices:
        return f"{known}: none"
    more = ", ..." if len(choices) > 24 else ""
    return printable(f"{known}: {', '.join(choices[:24])}{more}")


def _plain(word: str) -> str:
    return word.casefold().replace("-", "_")


def _cells(text: str) -> int:
    """Return the columns of ``text`` on a terminal."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
