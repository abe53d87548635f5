"""The ends of the phases of a repair within the launch, for living processes and for new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from chaos.evidence.facts import TRAIN, by_rank
from chaos.evidence.timestamp import Timestamp, latest
from chaos.history.event import Event
from chaos.mechanisms.markers import (
    Launch,
    Marker,
    MarkerError,
    first_of,
    last_of_ranks,
    marked,
    noticed,
    state_reached,
)


def _cleaned(launch: Launch, after: int) -> Timestamp:
    """Return the moment when all ranks are stopped and clean: the controller goes on to the repair."""
    begin = noticed(launch, after).mono
    try:
        return state_reached(launch, "REPAIR", begin)
    except MarkerError:
        end = "the end of stop and clean on all ranks"
        return launch.logged(lambda event: event.kind == "ttp.env_cleared", end, begin)


def _repaired(launch: Launch, after: int) -> Timestamp:
    return state_reached(launch, "NORMAL", _cleaned(launch, after).mono)


def _called(name: str, launch: Launch, after: int) -> Timestamp:
    calls = launch.history.select("handler.enter", attempt=TRAIN, name=name)
    return first_of(calls, after, f"a call of handler {name} after the fault")


def _first_replayed(launch: Launch, after: int) -> Timestamp:
    """Return the moment when every rank has ended a step that it began after the repair."""
    normal = _repaired(launch, after)
    ends: list[Event] = []
    ended = by_rank(launch.history, "step.end", TRAIN)
    for rank, begins in by_rank(launch.history, "train.begin", TRAIN).items():
        again = next((event.mono for event in begins if event.mono > after), None)
        ends.extend([event for event in ended.get(rank, []) if again is not None and event.mono > again][:1])
    last = last_of_ranks(launch, ends, "the end of a step after the repair", launch.plan.layout.ranks)
    # A rank may have its order, and be quick, before the controller writes its own line.
    return last if last.mono > normal.mono else replace(latest((last, normal)), where=last.where)


_MARKERS: Mapping[str, Marker] = MappingProxyType(
    {
        "detection": noticed,
        "stop": _cleaned,
        "restart": partial(_called, "rebuild_group"),
        "rebuild": partial(_called, "repair"),
        "repair": _repaired,
        "first step": _first_replayed,
    }
)


def phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase, or why it is not known."""
    return marked(_MARKERS, launch, after)
