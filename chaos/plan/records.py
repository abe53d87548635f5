"""Damage to the records by which MindFormers chooses a checkpoint, and what a job that is started again goes on from.

In the legacy layout each rank has one (``meta.json``). The oldest that they name is taken, of a step that all ranks
have; where no rank has one left, each takes its file with the latest time. In the new layout there is one for all
(``latest_checkpointed_iteration.txt``); what it names is taken, and without it nobody knows. Source: MindSpore
Transformers, Resumable Training After Breakpoint, and Resume Training 2.0 (1.5 to 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.plan.damage import PARAMETERS, damaging, newest_saved
from chaos.plan.describe import ranks
from chaos.plan.problems import Problems
from chaos.plan.schedule import LOST_FILES, RECORD, Scheduled
from chaos.plan.traits import JobTraits


@dataclass(frozen=True)
class Recorded:
    """What the records still say: ``newest`` is the last step that they allow, None for no limit.

    ``nobody`` says that the only one is not readable any more. ``why`` tells it in words, empty without damage.
    """

    newest: int | None = None
    nobody: bool = False
    why: str = ""


def of_records(faults: Sequence[Scheduled]) -> list[Scheduled]:
    """The faults that damage records."""
    return [fault for fault in faults if fault.effect == RECORD]


def check_records(faults: Sequence[Scheduled], traits: JobTraits, problems: Problems) -> None:
    """Note damage to records that a job does not have, and what nobody could tell the outcome of."""
    others = [fault for fault in faults if fault.effect == LOST_FILES] + damaging(faults)
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
        if others:
            problems.add(
                f"{fault.path}.kind",
                f"faults {fault.fault.id!r} and {others[0].fault.id!r} damage the record and the checkpoints; which "
                "file has the latest time is then left to chance",
                text=fault.fault.kind,
                hint="leave one of the two out",
            )


def recorded(
    faults: Sequence[Scheduled], last: Mapping[int, int], interval: int, traits: JobTraits, problems: Problems
) -> Recorded:
    """What the records say after the faults. ``last`` maps ranks to the last step that they have finished saving."""
    found = of_records(faults)
    stale = [fault for fault in found if _how(fault) == "stale"]
    gone = sorted({rank for fault in found if _how(fault) != "stale" for rank in fault.fault.ranks})
    limits: dict[int, int] = {}
    for fault in found:
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
    if limits:
        rank, step = min(limits.items(), key=lambda one: one[1])
        return Recorded(step, why=f"the record of rank {rank} names step {step}, and MindFormers goes by the records")
    if not gone:
        return Recorded()
    if not traits.rank_directories:
        return Recorded(
            nobody=True,
            why="the record that names the last checkpoint (latest_checkpointed_iteration.txt) "
            "cannot be read, so the job must say so and end",
        )
    newest = {newest_saved(step, interval) for step in last.values()}
    if len(gone) == len(last) and len(newest) > 1:
        fault = found[0]
        problems.add(
            f"{fault.path}.target",
            f"fault {fault.fault.id!r} leaves no rank a record, and the newest files of the ranks are of different "
            "steps, so that the latest times choose no step for all",
            text=fault.fault.kind,
            hint="let the ranks end behind the same checkpoint",
        )
    if len(gone) == len(last):
        return Recorded(why="no rank has a record (meta.json) any more, so each takes its file with the latest time")
    return Recorded(why=f"without the records of {ranks(gone)} those of the others count")


def _how(fault: Scheduled) -> object:
    return fault.fault.parameters.get("how", PARAMETERS["damage-record"]["how"][0])
