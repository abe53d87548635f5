"""Damage to the records by which MindFormers chooses a checkpoint, and the choice of a job that is started again.

In the legacy layout each rank has one (``meta.json``). MindFormers takes the oldest checkpoint that they name, of a
step that all ranks have. Where no rank has one left, each takes its file with the latest time (MindSpore Transformers,
Resumable Training After Breakpoint, 1.8 to 2.1); before 1.8 all do so as soon as one rank lacks it (the same page up to
1.7, and the feature card of resumable training). In the new layout there is one for all
(``latest_checkpointed_iteration.txt``). MindFormers takes the checkpoint that it names (Resume Training 2.0,
load_checkpoint); where it cannot be read, the promise is only the last complete save in the directory (the same,
automatic recovery).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.faults.checkpoints.plan_damage import PARAMETERS, damaging
from chaos.plan.checkpoints.periodic import newest_saved
from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled


@dataclass(frozen=True)
class Recorded:
    """The limit by the records: ``newest`` is the last step that they allow, None for no limit.

    ``why`` gives the reason in words, empty without damage.
    """

    newest: int | None = None
    why: str = ""


def of_records(faults: Sequence[Scheduled]) -> list[Scheduled]:
    """Return the faults that damage records."""
    return [fault for fault in faults if fault.effect.damages == "record"]


def check_records(draft: Draft, problems: Problems) -> None:
    """Note damage to records that a job does not have, and damage whose outcome is not known."""
    faults, traits = draft.faults, draft.traits
    file_faults = [fault for fault in faults if fault.effect.damages == "files"] + damaging(faults)
    for fault in of_records(faults):
        if not traits.restarts:
            problems.add(
                f"{fault.path}.kind",
                f"fault {fault.fault.id!r} damages the record of which checkpoint is the last, and only jobs of "
                "MindFormers keep one",
                text=fault.fault.kind,
                hint="use it with the kind mindformers or mindformers-rehearsal",
            )
        elif not traits.rank_directories and fault.fault.ranks != (0,):
            problems.add(
                f"{fault.path}.target",
                f"fault {fault.fault.id!r} damages latest_checkpointed_iteration.txt, which rank 0 writes for all",
                text="target",
                hint="hit rank 0",
            )
        if file_faults:
            problems.add(
                f"{fault.path}.kind",
                f"faults {fault.fault.id!r} and {file_faults[0].fault.id!r} damage the record and the checkpoints; "
                "which file then has the latest time is a matter of chance",
                text=fault.fault.kind,
                hint="remove one of the two",
            )


def recorded(draft: Draft, last: Mapping[int, int], interval: int, problems: Problems) -> Recorded:
    """Return the limit by the records after the faults. ``last`` maps ranks to the step of their last finished save."""
    traits = draft.traits
    faults = of_records(draft.faults)
    stale = [fault for fault in faults if _how(fault) == "stale"]
    recordless = sorted({rank for fault in faults if _how(fault) != "stale" for rank in fault.fault.ranks})
    limits: dict[int, int] = {}
    for fault in faults:
        for rank in fault.fault.ranks:
            step = newest_saved(last[rank], interval)
            least = interval if fault in stale else 0
            if step <= least:
                problems.add(
                    f"{fault.path}.trigger",
                    f"fault {fault.fault.id!r} finds no record of {'an older' if least else 'a'} checkpoint of rank "
                    f"{rank}: one is saved every {interval} steps, and the rank ends behind step {last[rank]}",
                    text=fault.fault.kind,
                    hint="let the job be ended later, or save more often",
                )
                return Recorded()
            if fault in stale:
                limits[rank] = step - interval
    nobody = len(recordless) == len(last)
    by_time = traits.rank_directories and bool(recordless) and (nobody or traits.all_records)
    if limits and not by_time:
        rank, step = min(limits.items(), key=lambda limit: limit[1])
        return Recorded(step, f"the record of rank {rank} names step {step}, and MindFormers goes by the records")
    if not recordless:
        return Recorded()
    if not traits.rank_directories:
        return Recorded(
            why="the record that names the last checkpoint (latest_checkpointed_iteration.txt) cannot be read; "
            "promised is the last complete checkpoint in the directory (MindSpore Transformers, Resume Training 2.0)"
        )
    if not by_time:
        return Recorded(why=f"without the records of {ranks(recordless)} those of the others count")
    lacks = "no rank has a record (meta.json) any more" if nobody else f"{ranks(recordless)} has no record (meta.json)"
    if len({newest_saved(step, interval) for step in last.values()}) > 1:
        problems.add(
            f"{faults[0].path}.target",
            f"after fault {faults[0].fault.id!r} {lacks}, and the newest files of the ranks are of different steps, so "
            "that the latest times choose no step for all",
            text=faults[0].fault.kind,
            hint="let the ranks end behind the same checkpoint",
        )
    return Recorded(why=f"{lacks}, so each takes its file with the latest time")


def _how(fault: Scheduled) -> object:
    return fault.fault.parameters.get("how", PARAMETERS["damage-record"]["how"][0])
