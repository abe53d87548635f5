"""The damage of a fault to a checkpoint, as its loader meets it."""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.evidence.checkpoints.inputs import without_inputs
from chaos.evidence.facts import RESUME
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.mindformers_layout import ITERATION, PART
from chaos.observe.checkpoints.mindformers_records import COMMON, METADATA
from chaos.observe.checkpoints.registered import is_part
from chaos.plan.checkpoints.saved import INDEX, MODEL, OPTIMIZER


def part_of(path: PurePosixPath) -> str | None:
    """Return the part of a save in this file, in the words of the parameter ``part``; None where it is not known."""
    if path.name == INDEX:
        return INDEX
    if ITERATION.fullmatch(path.parent.name) is None:
        return MODEL
    if path.name in (COMMON, METADATA):
        return path.name
    match = PART.fullmatch(path.name)
    return None if match is None else {"model": MODEL, "opt": OPTIMIZER}[match["part"]]


def loads_made(history: History, rank: int | None = None) -> list[Event]:
    """Return the loads after the resume, without inputs and damaged files that a job has tried and given up."""
    loads = without_inputs(history, history.select("load.begin", attempt=RESUME, rank=rank))
    return [load for load in loads if not _given_up(history, load)]


def loads_ended(history: History, rank: int | None = None) -> list[Event]:
    """Return the ends of loads after the resume, without those of inputs."""
    return without_inputs(history, history.select("load.end", attempt=RESUME, rank=rank))


def _given_up(history: History, load: Event) -> bool:
    """Return whether a load was given up because of a fault's damage.

    The load did not come to its end; or its save had a damaged file, and the same part of another save was loaded
    afterwards.
    """
    path = str(load.data.get("path"))
    damaged = [str(entry.get("file")) for entry in _shown(history) if entry.get("after") != entry.get("before")]
    save = PurePosixPath(path).parent
    if ITERATION.fullmatch(save.name) and any(
        ends_with(str(save), str(PurePosixPath(file).parent)) for file in damaged
    ):
        for other in history.select("load.begin", attempt=RESUME, rank=load.rank, pid=load.pid):
            instead = PurePosixPath(str(other.data.get("path")))
            if other.mono > load.mono and instead.parent != save and part_of(instead) == part_of(PurePosixPath(path)):
                return True
    if not any(is_of(path, file) for file in damaged):
        return False
    ends = history.select("load.end", attempt=RESUME, rank=load.rank, pid=load.pid)
    return not any(end.data.get("path") == load.data.get("path") and end.mono >= load.mono for end in ends)


def as_saved(history: History, recorded: str) -> str:
    """Return the path of the file whose content was loaded under a path that a process recorded.

    A renamed file has its own name back, so it was put back. Under the name of a stale file lay the content of an older
    file, byte for byte: its loader has loaded the older file.
    """
    for entry in _shown(history):
        renamed, older, file = entry.get("renamed"), entry.get("older"), str(entry.get("file"))
        if isinstance(renamed, str) and ends_with(recorded, renamed):
            return PurePosixPath(recorded).with_name(PurePosixPath(file).name).as_posix()
        if isinstance(older, str) and ends_with(recorded, file):
            return PurePosixPath(*PurePosixPath(recorded).parts[: -len(PurePosixPath(file).parts)], older).as_posix()
    return recorded


def is_damaged(history: History, recorded: str) -> bool:
    """Return whether a recorded path is of a file to which a fault had given content that no rank saved."""
    return any(
        is_of(recorded, str(entry.get("file"))) and entry.get("after") != entry.get("before") and not entry.get("older")
        for entry in _shown(history)
    )


def change_of(history: History, recorded: str, saved: int) -> Event | None:
    """Return the landing of the fault that changed, replaced or renamed a file after it was saved; None without one."""
    for landing in history.select("fault.landed"):
        for entry in landing.data.get("evidence") or []:
            if not isinstance(entry, dict) or landing.mono < saved or not is_of(recorded, str(entry.get("file"))):
                continue
            if entry.get("after") != entry.get("before") or entry.get("renamed"):
                return landing
    return None


def _shown(history: History) -> list[dict[str, object]]:
    landings = history.select("fault.landed")
    return [entry for landing in landings for entry in landing.data.get("evidence") or [] if isinstance(entry, dict)]


def is_of(recorded: str, file: str) -> bool:
    """Return whether a recorded path is a file, or the directory that is one checkpoint and has the file as a part."""
    if ends_with(recorded, file):
        return True
    part = PurePosixPath(file)
    return is_part(part.name) and ends_with(recorded, str(part.parent))


def ends_with(path: str, file: str) -> bool:
    """Return whether a recorded path ends with the parts of another path."""
    parts, ending = PurePosixPath(path).parts, PurePosixPath(file).parts
    return parts[-len(ending) :] == ending
