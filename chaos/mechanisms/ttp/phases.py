"""The ends of the phases of an end-of-life checkpoint, and of the job's start after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from chaos.evidence.facts import TRAIN
from chaos.evidence.timestamp import Timestamp
from chaos.mechanisms.markers import Launch, Marker, first_of, marked, noticed
from chaos.mechanisms.restart_phases import AFTER_EXIT


def _save_began(launch: Launch, after: int) -> Timestamp:
    saves = launch.history.select("handler.enter", attempt=TRAIN, name="save_ckpt")
    saves += launch.history.select("checkpoint.begin", attempt=TRAIN, kind="end-of-life")
    if saves:
        return first_of(sorted(saves, key=lambda event: event.mono), after, "the beginning of a save after the fault")
    return launch.logged(lambda event: event.kind == "ttp.dump_begin", "the beginning of a save", after)


def _renamed(launch: Launch, after: int) -> Timestamp:
    renames = launch.history.select("handler.exit", attempt=TRAIN, name="rename")
    if renames:
        return first_of(renames, after, "the end of the rename after the fault")
    return launch.logged(lambda event: event.kind == "ttp.renamed", "the end of the rename", after)


_MARKERS: Mapping[str, Marker] = MappingProxyType(
    {
        "detection": noticed,
        "stop": _save_began,
        "save": _renamed,
        **AFTER_EXIT,
    }
)


def phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase, or why it is not known."""
    return marked(_MARKERS, launch, after)
