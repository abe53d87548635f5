"""Losses of frameworks that print the mean since their last line: Megatron, MindSpeed and torchtitan.

Where each step has a line, the mean is the step's own loss. Elsewhere it is that of several steps, and after a restart
of other steps than without one: compared with a fault-free run it would differ for no reason. Such a log has no losses
here, so that a check has no evidence in it.

From core_v0.16 on Megatron prints the first step of each process without beginning a new mean, so that the second line
holds the mean of two steps. These versions also print microseconds, by which the line is known (source of core_v0.12 to
2026-08).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timezone
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from chaos.observe.logs.losses.loss_columns import NO_TIME, LossColumns
from chaos.observe.logs.mindformers_log import STEP
from chaos.observe.logs.reader import read_line
from chaos.observe.logs.torch.megatron_log import MegatronLogReader
from chaos.observe.logs.torch.script_log import ScriptLogReader

MARKS = (" | consumed samples:", " - INFO - step: ")
"""Texts of which every line of a step of these frameworks has one."""


_GOES_ON = re.compile(r"\.\d{6}\] {1,4}iteration ")


class _Row(NamedTuple):
    """A line of a step. ``loss`` is None where it has none.

    ``goes_on``: the mean of a process's first line goes on in its second.
    """

    line: int
    step: int
    loss: float | None
    places: int
    goes_on: bool


def mean_losses(columns: LossColumns) -> LossColumns | None:
    """Return the losses in the lines ``others`` of a log; None if none of them is of such a framework.

    The result is empty if a step between two lines has no line.
    """
    rows = list(_rows(columns.others))
    if not rows:
        return None
    kept = [row for row in _own(rows) if row.loss is not None] if _every_step([row.step for row in rows]) else []
    return replace(
        columns,
        line=np.array([row.line for row in kept], np.int64),
        step=np.array([row.step for row in kept], np.int64),
        loss=np.array([row.loss for row in kept], np.float64),
        places=np.array([row.places for row in kept], np.int64),
        present=np.ones(len(kept), np.bool_),
        wall=np.full(len(kept), NO_TIME),
    )


def _rows(lines: Iterable[tuple[int, str]]) -> Iterator[_Row]:
    readers = [MegatronLogReader(timezone.utc), ScriptLogReader(timezone.utc)]
    for number, text in lines:
        if not any(mark in text for mark in MARKS):
            continue
        for event, _ in read_line(readers, text.removesuffix("\r")):
            if event.kind == STEP and event.step:
                loss, places = event.fields.get("loss"), event.fields.get("places", -1)
                own = None if loss is None else float(loss)
                yield _Row(number, event.step, own, int(places), _GOES_ON.search(text) is not None)


def _own(rows: Sequence[_Row]) -> Iterator[_Row]:
    """Yield the lines whose loss is that of their step alone.

    A step that is no later than the one before is the first of another process, or of a rollback: the line after it is
    left out all the same.
    """
    before: int | None = None
    is_second = False
    for row in rows:
        begins = before is None or row.step <= before
        if begins or not (is_second and row.goes_on):
            yield row
        before, is_second = row.step, begins


def _every_step(steps: Sequence[int]) -> bool:
    """Return whether each line of two or more is of the step after the line before, or of an earlier one.

    A single line shows nothing. The first line may be of any step: a restarted job goes on from there.
    """
    return len(steps) > 1 and all(after <= before + 1 for before, after in pairwise(steps))
