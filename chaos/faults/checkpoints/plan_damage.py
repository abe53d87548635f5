"""Damage to a periodic checkpoint: when it can be made, and its effect on a job that is started again.

A job must not go on from a damaged file, whether it still loads or not: it would train on with a state that never was.
A renamed file only has a wrong name, and names are hints; MindFormers looks for the name that it has recorded, so for
it a renamed file is a missing one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaos.faults.checkpoints.plan_met import check_met
from chaos.plan.checkpoints.periodic import newest_saved
from chaos.plan.checkpoints.saved import INDEX, METADATA, MODEL, OPTIMIZER, PARTS
from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.recovery.outcome import Outcome
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

PARAMETERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "flip-checkpoint": {"where": ("data", "header"), "part": PARTS},
    "partial-checkpoint": {"part": PARTS},
    "remove-checkpoint": {"part": PARTS},
    "stale-checkpoint": {"part": PARTS},
    "truncate-checkpoint": {"at": ("middle", "record"), "part": PARTS},
    "damage-record": {"how": ("remove", "corrupt", "stale", "truncate")},
}
"""The parameters of each kind with their values, the first being the default. Other kinds have none."""

BY_NAME = "MindFormers, resume training"
"""The reader for which a file is missing that has another name than the recorded one."""

NEEDS_OLDER = ("stale-checkpoint",)
"""Kinds that put an older file of the rank in place of the newest one."""


def damaging(faults: Sequence[Scheduled]) -> list[Scheduled]:
    """Return the faults that damage or rename checkpoints."""
    return [fault for fault in faults if fault.effect.changes_file]


def check_damage(draft: Draft, outcome: Outcome, problems: Problems) -> None:
    """Note damage that cannot be made, that no launch would meet, or whose moment is left to chance."""
    scenario, faults, traits = draft.scenario, draft.faults, draft.traits
    damaging_faults = [fault for fault in faults if fault.effect.changes_file or fault.effect.damages == "record"]
    first_fault: dict[int, str] = {}
    for fault in damaging_faults:
        _check_parameters(fault, problems)
        _check_form(fault, traits, problems)
        _check_part(scenario, fault, traits, problems)
        _check_kept(fault, traits, problems)
        for rank in fault.fault.ranks:
            if (other := first_fault.setdefault(rank, fault.fault.id)) != fault.fault.id:
                problems.add(
                    f"{fault.path}.target",
                    f"faults {other!r} and {fault.fault.id!r} both hit the newest checkpoint of rank {rank}, so its "
                    "final content is undefined",
                    text=f"rank {rank}",
                    hint="hit another rank, or remove one of the two",
                )
                break
    check_met(draft, outcome, damaging_faults, problems)


def _is_missed(fault: Scheduled, traits: JobTraits) -> bool:
    """Return whether no launch may go on from the fault's file: its content is spoilt, or nobody finds it."""
    return fault.effect.damages == "content" or (fault.effect.damages == "name" and traits.restarts)


def spoilt(draft: Draft, last: Mapping[int, int], interval: int, problems: Problems) -> dict[int, int]:
    """Return the step of the file that no launch may go on from, by rank. Notes ranks without a file to damage."""
    damaged: dict[int, int] = {}
    for fault in damaging(draft.faults):
        for rank in fault.fault.ranks:
            step = newest_saved(last[rank], interval)
            older = interval if fault.fault.kind in NEEDS_OLDER else 0
            if step <= older:
                problems.add(
                    f"{fault.path}.trigger",
                    f"fault {fault.fault.id!r} finds {'no older' if older else 'no'} checkpoint of rank {rank}: one is "
                    f"saved every {interval} steps, and the rank ends behind step {last[rank]}",
                    text=fault.fault.kind,
                    hint="let the job be ended later, or save more often",
                )
                break
            if _is_missed(fault, draft.traits):
                damaged[rank] = step
    return damaged


def _check_parameters(fault: Scheduled, problems: Problems) -> None:
    known = PARAMETERS.get(fault.fault.kind, {})
    for name, value in fault.fault.parameters.items():
        path = f"{fault.path}.parameters.{name}"
        if name not in known:
            hint = f"its parameters: {', '.join(known)}" if known else "it has none"
            problems.add(path, f"a {fault.fault.kind} has no parameter {name!r}", text=name, hint=hint)
        elif value not in known[name]:
            hint = f"use one of: {', '.join(known[name])}"
            problems.add(path, f"{name} of a {fault.fault.kind} cannot be {value!r}", text=value, hint=hint)


def _check_form(fault: Scheduled, traits: JobTraits, problems: Problems) -> None:
    """Note a fault that changes something which a file of this job's form does not have."""
    if fault.fault.parameters.get("at") == "record" and traits.file_format != "ckpt":
        problems.add(
            f"{fault.path}.parameters.at",
            f"fault {fault.fault.id!r} cuts a file between two values of a .ckpt, and this job saves "
            f"{'files in a form of its own' if traits.file_format is None else f'.{traits.file_format}'}",
            text="record",
            hint="use at: middle, or leave it out",
        )
    if fault.effect.damages == "name" and not traits.rank_directories:
        problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} gives a file the name of another step, but in this job's layout the step is in "
            "the name of the directory that all ranks save in (MindFormers, layout iteration_N)",
            text=fault.fault.kind,
            hint="use a configuration that saves in the legacy layout, or another kind of damage",
        )


def _check_part(scenario: Scenario, fault: Scheduled, traits: JobTraits, problems: Problems) -> None:
    """Note a part that is not in this job's layout, or that the fault cannot hit."""
    part = fault.fault.parameters.get("part", MODEL)
    if part == MODEL or part not in PARTS:
        return
    path = f"{fault.path}.parameters.part"
    if part == INDEX and not traits.shards_state:
        problems.add(
            path,
            f"fault {fault.fault.id!r} hits {part}, which only PyTorch's distributed checkpoints have",
            text=part,
            hint="use a job of kind torch whose script saves with torch.distributed.checkpoint",
        )
    elif part != INDEX and traits.rank_directories:
        problems.add(
            path,
            f"fault {fault.fault.id!r} hits {part} of a checkpoint, and in this job's layout a rank's checkpoint is "
            "one file",
            text=part,
            hint="leave part out, or use a configuration of MindFormers that saves in the layout iteration_N",
        )
    elif part != OPTIMIZER and fault.fault.ranks != (0,):
        problems.add(
            f"{fault.path}.target",
            f"fault {fault.fault.id!r} hits {part}, which rank 0 writes for all",
            text="target",
            hint="hit rank 0",
        )
    elif part == METADATA and scenario.cluster.ranks == 1:
        problems.add(
            path,
            f"fault {fault.fault.id!r} hits {part}, and MindFormers writes one in jobs of several ranks only",
            text=part,
            hint="hit another part",
        )
    elif part != OPTIMIZER and fault.fault.kind == "flip-checkpoint" and _where(fault) == "data":
        problems.add(
            path,
            f"fault {fault.fault.id!r} changes a bit of a weight, and {part} holds none",
            text=part,
            hint="use where: header, which makes it unreadable",
        )


def _where(fault: Scheduled) -> object:
    return fault.fault.parameters.get("where", "data")


def _check_kept(fault: Scheduled, traits: JobTraits, problems: Problems) -> None:
    """Note jobs that keep only the newest checkpoint: there is none to go back to and none to put in its place."""
    needs = fault.effect.damages != "record" or fault.fault.parameters.get("how") == "stale"
    if needs and traits.kept is not None and traits.kept < 2:
        problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} needs a checkpoint before the newest one, and this job keeps {traits.kept}: "
            "the older ones are deleted (keep_checkpoint_max, or save_max of the new layout)",
            text=fault.fault.kind,
            hint="let the job keep 2 or more",
        )
