"""A soak of kills: the harness is killed at random moments and healed, recorded so that it can be resumed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from chaos.run.json_lines import JsonLines
from chaos.run.soak import Cell

_LATE_SECONDS = 0.2
"""At most so long after a line of the history its moment is: what follows a record lasts milliseconds."""
_HEAL_SECONDS = 1.5
"""A heal that is killed itself is killed within this time from its start."""

T = TypeVar("T")


@dataclass(frozen=True)
class Whole:
    """A run of the cell that was not killed: how long it took, and how many lines its harness has recorded."""

    scenario: str
    cell: str
    code: str
    seconds: float
    lines: int

    @property
    def of(self) -> Cell:
        """The cell that was run."""
        return self.scenario, self.cell


@dataclass(frozen=True)
class Moment:
    """When a harness is killed: ``seconds`` after its start, or after line ``line`` of its history.

    ``heal`` is when the first heal is killed too, in seconds; None when it is not.
    """

    seconds: float
    line: int | None
    heal: float | None

    def __str__(self) -> str:
        since = "the start" if self.line is None else f"line {self.line} of the history"
        healed = "" if self.heal is None else f", the first heal after {self.heal:.3f} s"
        return f"{self.seconds:.3f} s after {since}{healed}"


@dataclass(frozen=True)
class Kill:
    """One run whose harness was killed. ``killed`` is False when the run had ended before the moment came.

    ``reached`` is the last event of its history, ``done`` what heal did, ``left`` what was left afterwards.
    """

    scenario: str
    cell: str
    code: str
    number: int
    seed: int
    moment: str
    killed: bool
    reached: str
    seconds: float
    done: list[str]
    left: list[str]

    @property
    def of(self) -> Cell:
        """The cell that was run."""
        return self.scenario, self.cell


def draw(seed: int, cell: Cell, number: int, whole: Whole) -> Moment:
    """The moment of kill ``number``: half of them uniform in time, half close to something that was recorded.

    In time alone the short acts, a mount or a signal, would hardly ever be hit. Every fourth heal is killed too.
    """
    source = random.Random(f"{seed} {cell} {number}")
    heal = source.uniform(0, _HEAL_SECONDS) if source.random() < 0.25 else None
    if source.random() < 0.5 or not whole.lines:
        return Moment(source.uniform(0, whole.seconds), None, heal)
    return Moment(source.uniform(0, _LATE_SECONDS) ** 2 / _LATE_SECONDS, source.randint(1, whole.lines), heal)


class KillRecord:
    """The file of a soak of kills: one line for each whole run and each kill."""

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)

    def append(self, entry: Whole | Kill) -> None:
        """Add an entry."""
        self._lines.append({"record": _NAMES[type(entry)], **asdict(entry)})

    def wholes(self) -> list[Whole]:
        """Every whole run, in order."""
        return self._of(Whole)

    def kills(self) -> list[Kill]:
        """Every kill, in order, also those that came too late."""
        return self._of(Kill)

    def _of(self, kind: type[T]) -> list[T]:
        records = (dict(record) for record in self._lines.read())
        return [made for one in records if one.pop("record", None) == _NAMES[kind] and (made := _made(kind, one))]


_NAMES: dict[type[Any], str] = {Whole: "whole", Kill: "kill"}


def _made(kind: type[T], record: dict[str, Any]) -> T | None:
    try:
        return kind(**record)
    except TypeError:
        return None


@dataclass(frozen=True)
class KillTally:
    """What the kills of one cell came to. ``healed``: heal found something. ``left``: something was left after it."""

    scenario: str
    cell: str
    killed: int
    healed: int
    left: int

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def tally(cell: Cell, kills: Iterable[Kill]) -> KillTally:
    """Add up the kills of a cell; those that came too late do not count."""
    own = [kill for kill in kills if kill.of == cell and kill.killed]
    return KillTally(*cell, len(own), sum(bool(kill.done) for kill in own), sum(bool(kill.left) for kill in own))
