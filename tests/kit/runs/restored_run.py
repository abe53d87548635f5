"""A run directory as a good distributed recovery leaves it, made without a job, to be spoilt one thing at a time.

It is the good run without any mechanism: what all ranks had saved after step 5 are periodic checkpoints of their own
slices, rank 2 has lost its own, and the job started again takes those of rank 0 for it.
"""

from __future__ import annotations

from typing import Any

from chaos.plan.job_effect import LOST_FILES
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Budget
from chaos.plan.parts.resume import PlannedRestore
from tests.kit.fresh_copies import fresh_copies
from tests.kit.runs.good_run import (
    FAULT,
    GROUPS,
    LAST,
    RANKS,
    SAVED,
    VICTIM,
    GoodRun,
    Saved,
    good_run,
    pid_of,
    record,
    state_after,
)

LOSS = "disk"
HOLDERS: dict[int, tuple[int, ...]] = {0: (0,), 1: (1,), 2: (0,), 3: (3,)}


def slices_of(rank: int) -> str:
    """Path of a rank's file under the job's directory."""
    return f"checkpoints/rank_{rank}/sliced-1_{SAVED}.ckpt"


def group_info(*ranks: int) -> bytes:
    """The file that says that these ranks hold the same slices (all numbers below 128)."""
    listed = bytes(byte for rank in ranks for byte in (0x08, rank))
    return bytes([0x12, len(listed)]) + listed


def _save(run: GoodRun, attempt: str, rank: int, step: int) -> None:
    """The record of a periodic checkpoint, behind the end of the step."""
    trained = run.only("digest", attempt=attempt, rank=rank, step=step)
    path = f"checkpoints/rank_{rank}/sliced-1_{step}.ckpt"
    for number, event in enumerate(("checkpoint.begin", "checkpoint.end"), 1):
        later = {name: trained[name] + 1_000_000 * number for name in ("mono", "wall")}
        place = {name: trained[name] for name in ("attempt", "rank", "pid", "step")}
        run.add(f"{attempt}-rank_{rank}", {"event": event, "kind": "periodic", "path": path, **place, **later})


def saves_again(run: GoodRun) -> None:
    """The job started again saves, too, and its interval asks for that."""
    run.replan(checkpoint_interval=SAVED)
    for rank in range(RANKS):
        _save(run, "resume", rank, 2 * SAVED)


@fresh_copies
def restored_run() -> GoodRun:
    """A run without a fault of its own."""
    run = good_run()
    losing = PlannedFault(LOSS, "lose-checkpoint", (VICTIM,), {"after": FAULT}, {}, None, 18, LOST_FILES)
    run.replan(
        mechanism="none",
        checkpoint=None,
        recoveries=(),
        protection=(),
        checkpoint_interval=LAST - SAVED + 1,  # the job started again has none to save
        budget=Budget(None, {}),
        faults=(*run.plan.faults, losing),
        restore=PlannedRestore(SAVED, (VICTIM,), HOLDERS),
        group_info=True,
    )
    for event in ("handler.enter", "handler.exit", "checkpoint.begin", "checkpoint.end"):
        run.drop(event)
    run.log, run.saved = [], {}
    for rank in range(RANKS):
        if rank != VICTIM:
            _save(run, "train", rank, SAVED)
    for rank in set(HOLDERS) - {VICTIM}:
        run.saved[rank] = Saved(f"job/{slices_of(rank)}", state_after(rank, SAVED), {})
    for rank in range(RANKS):
        members = next(group for group in GROUPS if rank in group)
        run.others[f"job/checkpoints/rank_{rank}/group_info.pb"] = group_info(*members)
        for event in ("load.begin", "load.end"):
            for entry in run.events(event, rank=rank):
                entry["path"] = slices_of(HOLDERS[rank][0])
    place: dict[str, Any] = {"attempt": "train", "rank": VICTIM, "pid": pid_of("train", VICTIM)}
    evidence = {**place, "signal": None, "removed": [f"sliced-1_{SAVED}.ckpt"], "directory": f"rank_{VICTIM}"}
    evidence["barrier"] = None
    fields: dict[str, Any] = {"fault": LOSS, "kind": "lose-checkpoint"}
    for entry in (
        record(9.6, "fault.armed", ranks=[VICTIM], **fields),
        record(10.6, "fault.injecting", signal=None, target_rank=VICTIM, start_time=102, **fields, **place),
        record(10.7, "fault.landed", ranks=[VICTIM], step=None, phase=None, evidence=[evidence], **fields),
        record(12.2, "fault.healed", fault=LOSS, how="kept in lost/rank_2"),
    ):
        run.add("harness", entry)
    return run
