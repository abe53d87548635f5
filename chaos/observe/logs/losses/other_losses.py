"""Losses in the logs of programs that only a reader of another package knows.

Its ``train.step`` events become the columns that :mod:`chaos.observe.logs.losses.loss_columns` makes of MindFormers'
lines, so that the checks judge both alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.loss_columns import NO_TIME, LossColumns
from chaos.observe.logs.mindformers_log import STEP
from chaos.observe.logs.reader import LogScan, built_in_readers, read_log

EXACT = -1
"""Marks a loss without a known number of digits after the point: it is compared as an exact number."""


def read_losses(path: Path, rank: int | None, others: Sequence[LogReader]) -> LossColumns:
    """Return the losses that the readers ``others`` find in a log of ``rank`` (None: any rank's log).

    An event counts if it has a step from 1 on and a field ``loss`` (None: the rank has none there), and names no other
    rank. Its field ``places`` is the number of digits after the point. Raises OSError when the log cannot be read,
    and ValueError for a loss that is no number.
    """
    scan = LogScan(keep=0)
    rows = list(_rows(path, rank, others, scan))
    return LossColumns(
        np.array([row.line for row in rows], np.int64),
        np.array([row.step for row in rows], np.int64),
        np.array([np.nan if row.loss is None else row.loss for row in rows], np.float64),
        np.array([row.places for row in rows], np.int64),
        np.array([row.loss is not None for row in rows], np.bool_),
        np.full(len(rows), NO_TIME),
        (),
        scan.lines,
        scan.torn,
    )


class _Row(NamedTuple):
    line: int
    step: int
    loss: float | None
    places: int


def _rows(path: Path, rank: int | None, others: Sequence[LogReader], scan: LogScan) -> Iterator[_Row]:
    for event in read_log(path, [*built_in_readers(timezone.utc), *others], scan=scan):
        if event.step and counts(event, rank):
            yield _Row(event.line, event.step, loss_of(event, path), _places(event))


def counts(event: LogEvent, rank: int | None) -> bool:
    """Return whether an event of a log is a step of this rank with its loss, or without one where it has none."""
    return bool(event.kind == STEP and event.step and "loss" in event.fields) and (
        rank is None or event.rank in (None, rank)
    )


def loss_of(event: LogEvent, path: Path) -> float | None:
    """Return the loss of such a step; None on a rank that has none. Raises ValueError where it is no number."""
    loss = event.fields["loss"]
    try:
        return None if loss is None else float(loss)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path.name}:{event.line}: a reader of another package gives {loss!r} as the loss of step {event.step}; "
            "it has to be a number, or None on a rank that has no loss"
        ) from error


def _places(event: LogEvent) -> int:
    places = event.fields.get("places")
    return places if isinstance(places, int) and not isinstance(places, bool) and places >= 0 else EXACT
