"""The last name of a saved file: a job may write a checkpoint under one name and publish it under another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chaos.history.event import Event

RENAMED = "checkpoint.renamed"
"""A rank's record that a file which it had saved got another name: ``path``, and ``to``."""

_SAVES = frozenset({"checkpoint.begin", "checkpoint.end", "checkpoint.written"})

WRITTEN_AS = "written_as"
"""The field of a save with the name under which the file was written, where it has another one now."""


def with_last_names(events: Iterable[Event]) -> list[Event]:
    """Return the events in their order, each save with the last name of its file as its ``path``.

    Only a save since the file's last renaming is meant: the next save under the same first name is another file.
    """
    named = list(events)
    unpublished: dict[str, list[int]] = {}
    for place, event in enumerate(named):
        path = event.data.get("path")
        if event.event in _SAVES and isinstance(path, str):
            unpublished.setdefault(path, []).append(place)
        elif event.event == RENAMED and isinstance(to := event.data.get("to"), str) and isinstance(path, str):
            places = unpublished.pop(path, [])
            for saved in places:
                data = named[saved].data
                named[saved] = replace(named[saved], data={WRITTEN_AS: data["path"], **data, "path": to})
            unpublished[to] = places
    return named
