"""Keys of a scenario that the job's own files decide: their values are filled in if the scenario leaves them out.

A key in both must have the same value. The source of each value is kept, so that a plan and a problem can name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, TypeAlias

from chaos.scenario.errors import Problem, printable, quote
from chaos.scenario.lines import Lines, Path
from chaos.scenario.rules_base import mapped


@dataclass(frozen=True)
class Origin:
    """The place of a value in a job's own file.

    ``key`` is its name there and ``value`` its text. ``line`` and ``column`` count from 1; line 0 means that the file
    leaves the key out and that the job then takes this value. ``excerpt`` and ``caret`` are those of a problem.
    """

    file: str
    line: int
    column: int
    key: str
    value: str
    excerpt: str = ""
    caret: int = -1

    def problem(self, message: str, hint: str = "") -> Problem:
        """Return a problem with the value, which quotes its line."""
        text = self.key.rpartition(".")[2]
        return Problem(self.file, self.line, self.column, printable(message), text, hint, self.excerpt, self.caret)

    def __str__(self) -> str:
        if self.line:
            return printable(f"{self.file}:{self.line}: {self.key}: {self.value}")
        return printable(f"{self.file} leaves {self.key} out, which means {self.value}")


@dataclass(frozen=True)
class Filled:
    """One value: the path of its key in the scenario, its plain data, and its source."""

    path: Path
    value: Any
    origin: Origin


@dataclass(frozen=True)
class Unfinished:
    """One cell of a scenario as written, variables filled in: plain data that is not checked yet.

    ``lines`` holds the places of its keys in ``file``.
    """

    data: Mapping[str, Any]
    file: File
    lines: Lines


@dataclass(frozen=True)
class Completion:
    """The values of a job's own files. ``facts`` are values without a key in a scenario, by the names that plans use.

    ``problems`` make the files unusable; then the cell is not checked any further.
    """

    values: tuple[Filled, ...] = ()
    facts: tuple[tuple[str, Origin], ...] = ()
    problems: tuple[Problem, ...] = ()


Complete: TypeAlias = Callable[[Unfinished], "Completion | None"]
"""Reads the values of a job's own files for a cell; None if its kind of job has no such files."""

_KEYS = frozenset({"arguments", "config", "overrides", "checkout", "environment"})


def may_be_completed(job: object, cluster: object) -> bool:
    """Return whether another source may decide keys of these sections.

    The scenario names files of the job, or variables that set a key, or leaves out a required key.

    Takes the keys of both sections, or any other value if a section is no mapping.
    """
    if not isinstance(job, Iterable) or not isinstance(cluster, Iterable):
        return True
    written = set(job)
    return bool(written & _KEYS) or "steps" not in written or "ranks" not in set(cluster)


def merged(data: dict[str, Any], values: Iterable[Filled]) -> tuple[dict[str, Any], dict[str, Origin]]:
    """Return a copy of the data with missing values filled in, and the source of each of these, by dotted path."""
    data, origins = _copied(data, ("job", "cluster")), {}
    for filled in values:
        place: Any = data
        for part in filled.path[:-1]:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if isinstance(place, dict) and filled.path[-1] not in place:
            place[str(filled.path[-1])] = filled.value
            origins[".".join(map(str, filled.path))] = filled.origin
    return data, origins


def conflicts(data: Mapping[str, Any], values: Iterable[Filled]) -> Iterator[tuple[Path, str, str]]:
    """Yield values of the scenario that differ from the job's file: path, message and hint."""
    for filled in values:
        place: Any = data
        for part in filled.path[:-1]:
            place = mapped(place).get(str(part))
        key = str(filled.path[-1])
        if key in mapped(place) and not _same(place[key], filled.value):
            dotted = ".".join(map(str, filled.path))
            message = f"{dotted} is {_shown(place[key])} here, but {filled.origin}"
            yield filled.path, message, f"leave {dotted} out of the scenario, or make both say the same"


def _same(written: Any, read: Any) -> bool:
    if isinstance(written, list) and isinstance(read, list):
        return sorted(map(repr, written)) == sorted(map(repr, read))
    if isinstance(written, (str, int, float, list)) or written is None:
        return bool(written == read)
    return True  # of the wrong type, which is said elsewhere


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]" if len(value) < 20 else "another list"
    return quote(value) if isinstance(value, str) else str(value)


def _copied(data: dict[str, Any], sections: tuple[str, ...]) -> dict[str, Any]:
    """Return a copy in which these sections, and mappings in them, can be filled."""
    copy = dict(data)
    for name in sections:
        if isinstance(section := copy.get(name), dict):
            copy[name] = {key: dict(value) if isinstance(value, dict) else value for key, value in section.items()}
    return copy
