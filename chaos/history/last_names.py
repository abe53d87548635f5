"""The last name of a saved file: a job may write a checkpoint under one name and publish it under another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chaos.history.event import Event

RENAMED = "checkpoint.renamed"
"""A rank's record that a file which it had saved got another name: ``path``, and ``to``."""

_BEGIN = "checkpoint.begin"
_SAVES = frozenset({_BEGIN, "checkpoint.end", "checkpoint.written"})

WRITTEN_AS = "written_as"
"""The field of a save with the name under which the file was written, where it has another one now."""


def with_last_names(events: Iterable[Event]) -> list[Event]:
    """Return the events in their order, each save with the last name of its file as its ``path``.

    Only a save since the file's last renaming is meant: the next save under the same first name is another file. Of a
    directory that all ranks save, one rank alone records the new name. The end of another rank's save may come after
    it, and is of the file of its own beginning.
    """
    named = list(events)
    unpublished: dict[str, list[int]] = {}
    begun: dict[tuple[object, ...], int] = {}
    for place, event in enumerate(named):
        path = event.data.get("path")
        if event.event in _SAVES and isinstance(path, str):
            save = (event.attempt, event.rank, event.pid, path)
            if event.event == _BEGIN:
                begun[save] = place
            last = str(named[begun.get(save, place)].data["path"])
            if last != path:
                named[place] = _with_name(event, last)
            unpublished.setdefault(last, []).append(place)
        elif event.event == RENAMED and isinstance(to := event.data.get("to"), str) and isinstance(path, str):
            places = unpublished.pop(path, [])
            for saved in places:
                named[saved] = _with_name(named[saved], to)
            unpublished[to] = places
    return named


def _with_name(save: Event, name: str) -> Event:
    return replace(save, data={WRITTEN_AS: save.data["path"], **save.data, "path": name})
