"""Files that a fault takes away for good: when this can be planned, and which ranks have none left."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

RESTART = "MindFormers, resume training"


def losing(faults: Sequence[Scheduled]) -> list[Scheduled]:
    """Return the faults that take files away."""
    return [fault for fault in faults if fault.effect.damages == "files"]


def check_lost(draft: Draft, problems: Problems) -> None:
    """Note faults that take away files that are not there, or that may be saved once more."""
    for fault in losing(draft.faults):
        _check_lost(draft.scenario, fault, draft.traits, problems)


def lost_ranks(draft: Draft, everyone: int, problems: Problems) -> tuple[int, ...]:
    """Return the ranks whose files are gone. Notes where a job that goes on by itself would find nothing at all."""
    losses = losing(draft.faults)
    lost = tuple(sorted({rank for fault in losses for rank in fault.fault.ranks}))
    if draft.traits.restarts and len(lost) == everyone:
        _refuse_empty(losses[0], problems)
    return lost


def _check_lost(scenario: Scenario, fault: Scheduled, traits: JobTraits, problems: Problems) -> None:
    """Note faults while ranks still save, and jobs without a directory for each rank.

    Files are lost for good only when nobody saves any more.
    """
    if traits.storage is None:
        problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} takes away the directory that a rank saves in, and a job of kind "
            f"{scenario.job.kind!r} does not say where its script saves",
            text=fault.fault.kind,
            hint="remove-checkpoint takes away the newest file that the rank has recorded",
        )
    elif not traits.rank_directories:
        problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} takes away the directory that a rank saves in, but the job saves the files of "
            "all ranks in one directory for each step (MindFormers, layout iteration_N)",
            text=fault.fault.kind,
            hint="use a configuration that saves in the legacy layout",
        )
    if scenario.job.checkpoint_interval is None:
        problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} takes away periodic checkpoints, but the job saves none "
            f"({problems.where('job.checkpoint_interval')})",
            text=fault.fault.kind,
            hint="set job.checkpoint_interval",
        )
    if fault.fault.trigger.keys() != {"after"}:
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} removes the saves of its ranks, so it must come after their last save",
            text=", ".join(fault.fault.trigger),
            hint="let it wait for the fault that ends the job: after, and nothing else",
        )


def _refuse_empty(fault: Scheduled, problems: Problems) -> None:
    problems.add(
        f"{fault.path}.target",
        f"fault {fault.fault.id!r} leaves no file of any rank, and in an empty directory MindFormers silently trains "
        f"from the beginning ({RESTART}), which no check can distinguish from a failed resume",
        text="target",
        hint="leave one rank its files",
    )
