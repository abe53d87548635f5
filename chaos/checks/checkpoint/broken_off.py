"""Saves broken off by the planned end of their process: their leftovers are no dirt.

MindSpore writes a checkpoint under a temporary name and renames it when it is whole; PyTorch writes under the name that
it is given. A process that is ended in between leaves the temporary file, or a part of the file, and no component is to
blame for it.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import is_background, is_late, written
from chaos.evidence.facts import TRAIN
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.registered import format_named
from chaos.plan.model import Plan

_FORMATS = (".ckpt", ".safetensors")


def broken_off(plan: Plan, history: History, artifacts: Artifacts) -> set[str]:
    """Return the names, in the run's terms, of unfinished files of periodic saves that a planned end broke off.

    A process ends as planned when a fault takes it, when its rank gets a new process, or when the plan ends the whole
    launch; a process that has exited with 0 does not count. Only its last save can have been under way.
    """
    names: set[str] = set()
    for rank in range(plan.layout.ranks):
        for pid in _ended(plan, history, rank):
            names.update(artifacts.recorded(path) for path in _under_way(history, rank, pid))
    return names


def _ended(plan: Plan, history: History, rank: int) -> set[int | None]:
    """Return the processes of a rank that the plan lets end before they have come to the end of the training."""
    exits = history.select("rank.exit", attempt=TRAIN, rank=rank)
    taking = {fault.id for fault in plan.faults if fault.effect.silences}  # the teardown ends a suspended process
    acts = history.select("fault.injecting", attempt=TRAIN, rank=rank)
    ended = {event.pid for event in acts if str(event.data.get("fault")) in taking}
    restarts = sum(rank in recovery.restarted for recovery in plan.response.recoveries)
    ended.update(event.pid for event in exits[:-1][:restarts])
    if not reaches_the_end(plan):
        ended.update(event.pid for event in exits[-1:])
    return ended - {event.pid for event in exits if event.data.get("signal") is None and event.data.get("code") == 0}


def _under_way(history: History, rank: int, pid: int | None) -> tuple[str, ...]:
    """Return the temporary names of the file that a process was saving when it ended; none where it saved nothing."""
    begun = _of(history, "checkpoint.begin", rank, pid)
    if not begun:
        return ()
    last = begun[-1]
    after = [event for event in _of(history, "checkpoint.end", rank, pid) if event.seq > last.seq]
    later = [event for event in _of(history, "step.begin", rank, pid) if event.seq > last.seq and not is_late(last)]
    # A save in the background goes on after the call that began it, until the rank records the end of the writing.
    if written(history, last) is not None if is_background(last) else after or later:
        return ()
    return _temporary(last.data.get("path"))


def _of(history: History, event: str, rank: int, pid: int | None) -> list[Event]:
    facts = [fact for fact in history.select(event, attempt=TRAIN, rank=rank) if fact.pid == pid]
    return [fact for fact in facts if event == "step.begin" or fact.data.get("kind") == "periodic"]


def _temporary(path: object) -> tuple[str, ...]:
    """Return the possible names of a file while it is written; a path without a name has none."""
    if not isinstance(path, str) or not PurePosixPath(path).name:
        return ()
    # MindSpore adds the format to a name that has none; files of a format of its own name are written and renamed.
    named = any(format_named(PurePosixPath(path).name + end) for end in ("", ".ckpt"))
    in_place = () if named else (path,)
    bare = next((path.removesuffix(end) for end in _FORMATS if path.endswith(end)), path)
    return *in_place, f"{bare}.tmp", f"{bare}.partial", f"{path}.partial"
