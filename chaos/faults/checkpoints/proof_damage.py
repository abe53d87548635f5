"""The required evidence of a fault that damages or renames a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from chaos.evidence.checkpoints.damage import ends_with, is_of, part_of
from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import TRAIN
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.mindformers_layout import ITERATION
from chaos.observe.checkpoints.mindformers_records import COMMON, METADATA
from chaos.plan.checkpoints.saved import MODEL
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

ABSENT = "absent"
"""The digest of a file that a fault has taken away (chaos.faults.checkpoints.checkpoint_damage)."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def damage_doubts(
    plan: Plan, history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object]
) -> Iterator[Doubt]:
    """Yield reasons to doubt the damage at one rank, with where to look. None for faults with another effect."""
    if not (fault.effect.changes_file or fault.effect.damages == "record"):
        return
    rank, file = evidence.get("rank"), str(evidence.get("file"))
    before, after = str(evidence.get("before")), str(evidence.get("after"))
    removes = fault.kind == "remove-checkpoint" or (
        fault.kind == "damage-record" and fault.parameters.get("how", "remove") == "remove"
    )
    if not _DIGEST.fullmatch(before) or not (after == ABSENT if removes else _DIGEST.fullmatch(after)):
        yield f"the digests of rank {rank}'s file before and after are not in the evidence", (landing.source,)
    elif (before == after) != (fault.effect.damages == "name"):
        text = "the same content as before" if before == after else "another content than before"
        yield f"rank {rank}'s file {file} has {text}", (landing.source,)
    if fault.effect.damages == "name" and evidence.get("renamed") in (None, file):
        yield f"the evidence has no new name of rank {rank}'s file {file}", (landing.source,)
    saves = history.select("checkpoint.end", attempt=TRAIN, rank=rank if isinstance(rank, int) else -1)
    if fault.effect.damages == "record":
        yield from _record_doubts(fault, landing, evidence, saves)
        return
    if (part := part_of(PurePosixPath(file))) != (planned_part := fault.parameters.get("part", MODEL)):
        yield (
            f"rank {rank}'s file {file} is {part or 'no part of a save'}, planned is {planned_part}",
            (landing.source,),
        )
    file_saves = [save for save in saves if _is_of_save(str(save.data.get("path")), file)]
    if not file_saves:
        yield f"rank {rank}'s own history has no save of {file}", (landing.source,)
    planned = _planned_steps(plan).get(rank) if isinstance(rank, int) else None
    hit = evidence.get("step")
    if file_saves and (plan.training.steps_per_update or 1) > 1:  # the evidence has the optimizer's count: updates
        hit = file_saves[-1].data.get("step")
    if planned is not None and hit != planned:
        text = f"rank {rank}'s file of step {hit} was hit, not that of step {planned}"
        yield text, (landing.source, *(save.source for save in file_saves[:1]))


def _planned_steps(plan: Plan) -> Mapping[int, int]:
    """Return the step of the file that the plan expects to be damaged, by rank."""
    restored = {} if plan.resume.restore is None else plan.resume.restore.damaged
    within = {rank: step for recovery in plan.response.recoveries for rank, step in recovery.damaged.items()}
    return {**restored, **within}


def _is_of_save(path: str, file: str) -> bool:
    """Return whether a save that a rank has recorded is this file, or another file of the same save.

    In MindFormers' new layout no rank records the saving of a JSON file.
    """
    # MindSpore adds the format to a name that has none, as MindFormers gives it in its new layout.
    if any(is_of(path, name) for name in (file, file.removesuffix(".safetensors"))):
        return True
    beside = PurePosixPath(file).parent
    is_json = PurePosixPath(file).name in (COMMON, METADATA) and ITERATION.fullmatch(beside.name) is not None
    return is_json and ends_with(str(PurePosixPath(path).parent), str(beside))


def _record_doubts(
    fault: PlannedFault, landing: Event, evidence: dict[str, object], saves: list[Event]
) -> Iterator[Doubt]:
    """Yield a doubt unless the record was of the newest checkpoint that the rank has saved."""
    last = max((step for save in saves if isinstance(step := save.data.get("step"), int)), default=None)
    if last is None or evidence.get("step") != last:
        text = (
            f"rank {evidence.get('rank')}'s record was of step {evidence.get('step')}, its last save is of step {last}"
        )
        yield text, (landing.source, *(save.source for save in saves[-1:]))
