"""What the evidence of a fault must show that damages or renames a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import RESUME, TRAIN
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.mindformers_layout import ITERATION, PART
from chaos.observe.checkpoints.mindformers_records import COMMON, METADATA
from chaos.plan.damage import MODEL, OPTIMIZER
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

DAMAGED = "damaged checkpoint"
RENAMED = "renamed checkpoint"
"""The effects of such faults (chaos.plan.schedule)."""

RECORD = "damaged record"
"""The effect of one that spoils the record of which checkpoint is the last."""

ABSENT = "absent"
"""What stands for the digest of a file that a fault has taken away (chaos.faults.checkpoints.checkpoint_damage)."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def damage_doubts(
    plan: Plan, history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object]
) -> Iterator[Doubt]:
    """What speaks against such a fault at one rank, with where to look. Nothing for faults with another effect."""
    if fault.effect not in (DAMAGED, RENAMED, RECORD):
        return
    rank, file = evidence.get("rank"), str(evidence.get("file"))
    before, after = str(evidence.get("before")), str(evidence.get("after"))
    removes = fault.kind == "remove-checkpoint" or (
        fault.kind == "damage-record" and fault.parameters.get("how", "remove") == "remove"
    )
    if not _DIGEST.fullmatch(before) or not (after == ABSENT if removes else _DIGEST.fullmatch(after)):
        yield f"the digests of rank {rank}'s file before and after are not in the evidence", (landing.source,)
    elif (before == after) != (fault.effect == RENAMED):
        seen = "the same content as before" if before == after else "another content than before"
        yield f"rank {rank}'s file {file} has {seen}", (landing.source,)
    if fault.effect == RENAMED and evidence.get("renamed") in (None, file):
        yield f"the evidence has no new name of rank {rank}'s file {file}", (landing.source,)
    saves = history.select("checkpoint.end", attempt=TRAIN, rank=rank if isinstance(rank, int) else -1)
    if fault.effect == RECORD:
        yield from _record_doubts(fault, landing, evidence, saves)
        return
    if (part := _part(PurePosixPath(file))) != (planned_part := fault.parameters.get("part", MODEL)):
        yield (
            f"rank {rank}'s file {file} is {part or 'no part of a save'}, planned is {planned_part}",
            (landing.source,),
        )
    own = [save for save in saves if _is_of_save(str(save.data.get("path")), file)]
    if not own:
        yield f"rank {rank}'s own history has no save of {file}", (landing.source,)
    restore = plan.resume.restore
    planned = restore.damaged.get(rank) if restore is not None and isinstance(rank, int) else None
    hit = evidence.get("step")
    if own and (plan.training.steps_per_update or 1) > 1:  # the evidence has what the optimizer has counted: updates
        hit = own[-1].data.get("step")
    if planned is not None and hit != planned:
        seen = f"rank {rank}'s file of step {hit} was hit, not that of step {planned}"
        yield seen, (landing.source, *(save.source for save in own[:1]))


def _part(path: PurePosixPath) -> str | None:
    """Which part of a save this file is, in the words of the parameter ``part``; None where that is not known."""
    if ITERATION.fullmatch(path.parent.name) is None:
        return MODEL
    if path.name in (COMMON, METADATA):
        return path.name
    match = PART.fullmatch(path.name)
    return None if match is None else {"model": MODEL, "opt": OPTIMIZER}[match["part"]]


def _is_of_save(path: str, file: str) -> bool:
    """Whether a file that a rank has recorded as saved is this one, or one of the same save in MindFormers' new layout:
    there the files of JSON are written by nobody's save."""
    # MindSpore adds the format to a name that has none, as MindFormers gives it in its new layout.
    if any(ends_with(path, name) for name in (file, file.removesuffix(".safetensors"))):
        return True
    beside = PurePosixPath(file).parent
    is_json = PurePosixPath(file).name in (COMMON, METADATA) and ITERATION.fullmatch(beside.name) is not None
    return is_json and ends_with(str(PurePosixPath(path).parent), str(beside))


def _record_doubts(
    fault: PlannedFault, landing: Event, evidence: dict[str, object], saves: list[Event]
) -> Iterator[Doubt]:
    """The record was that of the newest checkpoint that the rank has saved."""
    last = max((step for save in saves if isinstance(step := save.data.get("step"), int)), default=None)
    if last is None or evidence.get("step") != last:
        seen = (
            f"rank {evidence.get('rank')}'s record was of step {evidence.get('step')}, its last save is of step {last}"
        )
        yield seen, (landing.source, *(save.source for save in saves[-1:]))


def loads_made(history: History, rank: int | None = None) -> list[Event]:
    """What was loaded after the resume. A damaged file that a job has tried and given up is none of it."""
    return [load for load in history.select("load.begin", attempt=RESUME, rank=rank) if not _given_up(history, load)]


def _given_up(history: History, load: Event) -> bool:
    """Whether a load of a file that a fault had damaged did not come to its end; or the save that it is of had a
    damaged file, and the same part of another save was loaded afterwards."""
    path = str(load.data.get("path"))
    damaged = [str(one.get("file")) for one in _shown(history) if one.get("after") != one.get("before")]
    save = PurePosixPath(path).parent
    if ITERATION.fullmatch(save.name) and any(ends_with(str(save), str(PurePosixPath(one).parent)) for one in damaged):
        for other in history.select("load.begin", attempt=RESUME, rank=load.rank, pid=load.pid):
            instead = PurePosixPath(str(other.data.get("path")))
            if other.mono > load.mono and instead.parent != save and _part(instead) == _part(PurePosixPath(path)):
                return True
    if not any(ends_with(path, one) for one in damaged):
        return False
    ends = history.select("load.end", attempt=RESUME, rank=load.rank, pid=load.pid)
    return not any(end.data.get("path") == load.data.get("path") and end.mono >= load.mono for end in ends)


def as_saved(history: History, recorded: str) -> str:
    """The path of the file whose content was loaded under a path that a process recorded.

    A renamed file has its own name back, so it was put back. Under the name of a stale one lay the content of an older
    file, byte for byte: whoever has loaded it has loaded that file.
    """
    for one in _shown(history):
        renamed, older, file = one.get("renamed"), one.get("older"), str(one.get("file"))
        if isinstance(renamed, str) and ends_with(recorded, renamed):
            return PurePosixPath(recorded).with_name(PurePosixPath(file).name).as_posix()
        if isinstance(older, str) and ends_with(recorded, file):
            return PurePosixPath(*PurePosixPath(recorded).parts[: -len(PurePosixPath(file).parts)], older).as_posix()
    return recorded


def is_damaged(history: History, recorded: str) -> bool:
    """Whether a path that a process recorded is of a file that a fault had given a content that nobody saved."""
    return any(
        ends_with(recorded, str(one.get("file"))) and one.get("after") != one.get("before") and not one.get("older")
        for one in _shown(history)
    )


def _shown(history: History) -> list[dict[str, object]]:
    landings = history.select("fault.landed")
    return [one for landing in landings for one in landing.data.get("evidence") or [] if isinstance(one, dict)]


def ends_with(path: str, file: str) -> bool:
    """Whether a recorded path ends with the parts of another one."""
    parts, wanted = PurePosixPath(path).parts, PurePosixPath(file).parts
    return parts[-len(wanted) :] == wanted
