"""A soak of kills: the harness is killed at random moments and healed, recorded so that it can be resumed."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from chaos.soak.soak import Cell
from chaos.store.json_lines import JsonLines

_LATE_SECONDS = 0.2
"""The longest delay of a moment after its line of the history: the actions after a record last milliseconds."""
_HEAL_SECONDS = 1.5
"""A heal that is killed itself is killed within this time from its start."""

T = TypeVar("T")


@dataclass(frozen=True)
class CompleteRun:
    """A run of the cell that was not killed: its duration, and the number of lines that its harness has recorded.

    After the lines ``acts`` a fault was there, was being made or was being ended; ``lasted`` gives the seconds of each
    of them, until the fault was undone. ``undo`` are the kinds of its undo steps.
    """

    scenario: str
    cell: str
    code: str
    seconds: float
    lines: int
    acts: list[int] = field(default_factory=list)
    undo: list[str] = field(default_factory=list)
    lasted: list[float] = field(default_factory=list)

    @property
    def of(self) -> Cell:
        """The cell that was run."""
        return self.scenario, self.cell


@dataclass(frozen=True)
class Moment:
    """The moment at which a harness is killed.

    It is ``seconds`` after its start, or after line ``line`` of its history, or after a step of the kind ``undo`` was
    open. ``heal`` is when the first heal is killed too, in seconds; None when it is not.
    """

    seconds: float
    line: int | None
    heal: float | None
    undo: str | None = None

    def __str__(self) -> str:
        since = "the start" if self.line is None else f"line {self.line} of the history"
        since = since if self.undo is None else f"a step {self.undo} was open"
        healed = "" if self.heal is None else f", the first heal after {self.heal:.3f} s"
        return f"{self.seconds:.3f} s after {since}{healed}"


@dataclass(frozen=True)
class Kill:
    """One run whose harness was killed. ``killed`` is False when the run had ended before the moment came.

    ``reached`` is the last event of its history, ``done`` are the actions of heal, ``left`` the leftovers afterwards.
    ``open`` are the kinds of undo steps that were open when it was killed.
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
    open: list[str] = field(default_factory=list)

    @property
    def of(self) -> Cell:
        """The cell that was run."""
        return self.scenario, self.cell


def draw(seed: int, cell: Cell, number: int, complete_run: CompleteRun, hit: Collection[str] = ()) -> Moment:
    """Return the moment of kill ``number``: half of them uniform in time, a quarter close to any record.

    In time alone the short acts, a mount or a signal, would hardly ever be hit. The last quarter is in the acts of the
    faults: while an undo step is open whose kind is not among those ``hit`` so far, one kind after another, and in the
    recorded acts once all kinds were hit. Every fourth heal is killed too.
    """
    source = random.Random(f"{seed} {cell} {number}")
    heal = source.uniform(0, _HEAL_SECONDS) if source.random() < 0.25 else None
    if number % 2 == 0 or not complete_run.lines:
        return Moment(source.uniform(0, complete_run.seconds), None, heal)
    line, late = source.randint(1, complete_run.lines), _LATE_SECONDS
    missed = sorted(set(complete_run.undo) - set(hit))
    if number % 4 == 1 and missed:
        late = min([late, *complete_run.lasted])
        return Moment(_early(source, late), None, heal, missed[number // 4 % len(missed)])
    if number % 4 == 1 and complete_run.acts:
        act = number // 4 % len(complete_run.acts)
        line, late = complete_run.acts[act], min([late, *complete_run.lasted[act : act + 1]])
    return Moment(_early(source, late), line, heal)


def _early(source: random.Random, late: float) -> float:
    """Return seconds up to ``late``, the sooner the likelier."""
    return source.uniform(0, late) ** 2 / late if late > 0 else 0.0


class KillRecord:
    """The file of a soak of kills: one line for each whole run and each kill."""

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)

    def append(self, entry: CompleteRun | Kill) -> None:
        """Add an entry."""
        self._lines.append({"record": _NAMES[type(entry)], **asdict(entry)})

    def complete_runs(self) -> list[CompleteRun]:
        """Return every whole run, in order."""
        return self._of(CompleteRun)

    def kills(self) -> list[Kill]:
        """Return every kill, in order, also kills that came too late."""
        return self._of(Kill)

    def _of(self, kind: type[T]) -> list[T]:
        records = (dict(record) for record in self._lines.read())
        return [
            made for record in records if record.pop("record", None) == _NAMES[kind] and (made := _made(kind, record))
        ]


_NAMES: dict[type[Any], str] = {CompleteRun: "whole", Kill: "kill"}


def _made(kind: type[T], record: dict[str, Any]) -> T | None:
    try:
        return kind(**record)
    except TypeError:
        return None


@dataclass(frozen=True)
class KillTally:
    """The results of the kills of one cell. ``healed``: heal had work to do. ``left``: leftovers remained after it.

    ``hit`` are the kinds of undo steps that were open at a kill, ``missed`` those of a whole run that never were.
    """

    scenario: str
    cell: str
    killed: int
    healed: int
    left: int
    hit: list[str]
    missed: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def tally(cell: Cell, kills: Iterable[Kill], undo: Collection[str] = ()) -> KillTally:
    """Add up the kills of a cell; kills that came too late do not count.

    ``undo`` has the kinds of a whole run.
    """
    cell_kills = [kill for kill in kills if kill.of == cell and kill.killed]
    hit = {kind for kill in cell_kills for kind in kill.open}
    healed, left = (
        sum(bool(texts) for texts in texts_of_kills)
        for texts_of_kills in ([k.done for k in cell_kills], [k.left for k in cell_kills])
    )
    return KillTally(*cell, len(cell_kills), healed, left, sorted(hit), sorted(set(undo) - hit))
