"""Files that a job reads in each of its starts, such as data or pretrained weights: no checkpoints to go on from."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.evidence.facts import TRAIN, is_of_this_run
from chaos.history.event import Event
from chaos.history.reader import History

_SAVES = ("checkpoint.begin", "checkpoint.end", "checkpoint.renamed")


def without_inputs(history: History, loads: Iterable[Event]) -> list[Event]:
    """Return loads, or their ends, without those of files that the job only reads."""
    return [load for load in loads if not _is_input(history, load)]


def _is_input(history: History, load: Event) -> bool:
    """Return whether a file is an input.

    It lies outside the run's directory, the rank has also read it in the first start before its first step, and no rank
    has recorded a save of it.
    """
    path = load.data.get("path")
    if is_of_this_run(history, str(path)) is not False:
        return False
    first = history.first("step.begin", attempt=TRAIN, rank=load.rank)
    read = history.select("load.begin", attempt=TRAIN, rank=load.rank)
    if not any(event.data.get("path") == path and (first is None or event.mono < first.mono) for event in read):
        return False
    return not any(event.data.get("path") == path for name in _SAVES for event in history.select(name))
