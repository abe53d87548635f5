"""The losses that one rank has printed in one launch, as columns with their places in the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.observe.logs.losses.loss_columns import LossColumns

Numbers = NDArray[Any]
_SLACK = 1 + 1e-9  # half a unit has no exact binary form


@dataclass(frozen=True)
class Printed:
    """One line: the step, the printed loss (None: the rank says that it has no loss), digits after the point, place."""

    step: int
    loss: float | None
    places: int
    where: str

    def __str__(self) -> str:
        if self.loss is None:
            return "no loss"
        return f"{self.loss:.{self.places}f}" if self.places >= 0 else f"{self.loss!r}"


class Track:
    """The lines of one rank in one launch, in the order of its logs (those of replaced processes first)."""

    def __init__(self, logs: Sequence[tuple[str, LossColumns]]) -> None:
        self.files = tuple(name for name, _ in logs)
        parts = [columns for _, columns in logs]
        self.step, self.loss, self.places, self.present, self._line = (
            np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])
            for name, kind in (
                ("step", np.int64),
                ("loss", np.float64),
                ("places", np.int64),
                ("present", np.bool_),
                ("line", np.int64),
            )
        )
        self._file = np.repeat(np.arange(len(parts)), [len(part.step) for part in parts])

    def __len__(self) -> int:
        return len(self.step)

    def at(self, row: int) -> Printed:
        """Return one line."""
        loss = float(self.loss[row]) if self.present[row] else None
        where = f"{self.files[int(self._file[row])]}:{int(self._line[row])}"
        return Printed(int(self.step[row]), loss, int(self.places[row]), where)

    def infinite(self) -> list[int]:
        """Return the rows whose loss is NaN or infinite."""
        return [int(row) for row in np.flatnonzero(self.present & ~np.isfinite(self.loss))]

    def returns(self) -> list[int]:
        """Return the rows whose step is not after the step of the row before."""
        return [int(row) for row in np.flatnonzero(np.diff(self.step) <= 0) + 1]


@dataclass(frozen=True)
class Course:
    """The training of one rank that counts: for each step up to the last one, the row that has its loss.

    ``rows`` has -1 where a step has no line. It is indexed by step.
    """

    track: Track
    rows: Numbers

    def steps(self) -> Numbers:
        """Return the steps that have a line."""
        return np.flatnonzero(self.rows >= 0)

    def at(self, step: int) -> Printed:
        """Return the line of a step that has one."""
        return self.track.at(int(self.rows[step]))


def course(track: Track, last_step: int, rows: Numbers | None = None) -> Course:
    """Return the last line of every step from 1 to ``last_step``, of these rows of the track or of all."""
    chosen = np.arange(len(track)) if rows is None else rows
    chosen = chosen[track.step[chosen] <= last_step]
    table = np.full(last_step + 1, -1, np.int64)
    table[track.step[chosen]] = chosen  # the last of several rows stays
    return Course(track, table)


def unequal(ours: Course, theirs: Course, tolerance: float) -> tuple[int, Numbers]:
    """Return how many losses can be compared, and the steps at which they differ.

    Losses are equal when they are printed alike; with different numbers of digits, when the shorter may be rounded from
    the longer. With a tolerance (relative to ``theirs``) the rounding of both is allowed for. NaN and infinity equal
    nothing.
    """
    length = min(len(ours.rows), len(theirs.rows))
    array, two = ours.rows[:length], theirs.rows[:length]
    steps = np.flatnonzero((array >= 0) & (two >= 0))
    steps = steps[ours.track.present[array[steps]] & theirs.track.present[two[steps]]]
    our_losses, their_losses = ours.track.loss[array[steps]], theirs.track.loss[two[steps]]
    digits, others = ours.track.places[array[steps]], theirs.track.places[two[steps]]
    with np.errstate(invalid="ignore"):
        if tolerance > 0:
            allowed = tolerance * np.abs(their_losses) + (_rounding(digits) + _rounding(others)) * _SLACK
            good = np.abs(our_losses - their_losses) <= allowed
        else:
            good = our_losses == their_losses
            if np.any(digits != others):
                allowed = _rounding(np.minimum(digits, others)) * _SLACK
                good |= (digits != others) & (np.abs(our_losses - their_losses) <= allowed)
    good &= np.isfinite(our_losses) & np.isfinite(their_losses)
    return len(steps), steps[~good]


def without(ours: Course, theirs: Course) -> Numbers:
    """Return the steps for which only one side has a line or a loss."""
    length = min(len(ours.rows), len(theirs.rows))
    array, two = ours.rows[:length], theirs.rows[:length]
    lone = (array >= 0) != (two >= 0)
    both = np.flatnonzero((array >= 0) & (two >= 0))
    lone[both] = ours.track.present[array[both]] != theirs.track.present[two[both]]
    return np.flatnonzero(lone)


def _rounding(places: Numbers) -> Numbers:
    """Return half a unit of the last digit; 0 where the number is not written out."""
    return np.where(places >= 0, 0.5 * 10.0 ** -np.maximum(places, 0), 0.0)
