"""Files that a job reads in each of its starts, such as data or pretrained weights: no checkpoints to go on from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath

from chaos.evidence.facts import TRAIN, is_of_this_run
from chaos.history.event import Event
from chaos.history.reader import History

_SAVES = ("checkpoint.begin", "checkpoint.end", "checkpoint.renamed")


def without_inputs(history: History, loads: Iterable[Event]) -> list[Event]:
    """Return loads, or their ends, without those of files that the job only reads.

    Such a file lies outside the run's directory. The rank has read it, or a file beside it, in the first start before
    its first step, and no rank has recorded a save there: data may be a file for each sample.
    """
    saved = {directory for name in _SAVES for event in history.select(name) for directory in _directories(event)}
    read = cache(lambda rank: _read_first(history, rank) - saved)
    return [
        load
        for load in loads
        if is_of_this_run(history, str(load.data.get("path"))) is not False
        or read(load.rank).isdisjoint(_directories(load))
    ]


def _read_first(history: History, rank: int | None) -> set[PurePosixPath]:
    """Return the directories of the files that a rank has read in the first start before its first step."""
    first = history.first("step.begin", attempt=TRAIN, rank=rank)
    loads = history.select("load.begin", attempt=TRAIN, rank=rank)
    return {directory for load in loads if first is None or load.mono < first.mono for directory in _directories(load)}


def _directories(event: Event) -> Iterator[PurePosixPath]:
    """Yield the directories of a recorded file, and of its last name."""
    yield from (PurePosixPath(path).parent for name in ("path", "to") if isinstance(path := event.data.get(name), str))
