"""The state of a run in progress, from what its directory holds so far.

A name is loaded when it is first used: code that follows a run takes a while to import, and a driver that shows a
clock needs none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.live.follower import Follower, follow
    from chaos.live.holders import waiting_for_cores
    from chaos.live.json_form import as_json
    from chaos.live.progressing import live_runs
    from chaos.live.thread import REST

__all__ = ["REST", "Follower", "as_json", "follow", "live_runs", "waiting_for_cores"]

_HOMES = {
    "REST": "thread",
    "Follower": "follower",
    "as_json": "json_form",
    "follow": "follower",
    "live_runs": "progressing",
    "waiting_for_cores": "holders",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
