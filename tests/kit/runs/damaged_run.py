"""The good distributed recovery with rank 2's file damaged in place of being lost: it was put back at the end."""

from __future__ import annotations

from typing import Any

from chaos.plan import job_effect
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.resume import PlannedRestore
from tests.kit.runs.good_run import FAULT, SAVED, VICTIM, GoodRun, Saved, pid_of, record, state_after
from tests.kit.runs.restored_run import HOLDERS, LOSS, restored_run, slices_of

FILE = f"rank_{VICTIM}/sliced-1_{SAVED}.ckpt"
RENAMED = f"rank_{VICTIM}/sliced-1_{2 * SAVED}.ckpt"
BEFORE, AFTER = "a" * 64, "b" * 64


def damaged_run(*, renamed: bool = False) -> GoodRun:
    """A run without a fault of its own."""
    run = restored_run()
    kind, effect = ("rename", job_effect.RENAMED) if renamed else ("truncate", job_effect.DAMAGED)
    hit = PlannedFault(LOSS, f"{kind}-checkpoint", (VICTIM,), {"after": FAULT}, {}, None, 18, effect)
    holders = {**HOLDERS, VICTIM: (0, VICTIM)} if renamed else HOLDERS
    damaged = {} if renamed else {VICTIM: SAVED}
    run.replan(faults=(run.plan.faults[0], hit), restore=PlannedRestore(SAVED, (), holders, damaged))
    run.saved[VICTIM] = Saved(f"job/{slices_of(VICTIM)}", state_after(VICTIM, SAVED), {})
    for event in ("fault.armed", "fault.injecting", "fault.landed"):
        run.only(event, fault=LOSS)["kind"] = hit.kind
    place: dict[str, Any] = {"attempt": "train", "rank": VICTIM, "pid": pid_of("train", VICTIM)}
    run.add(
        f"train-rank_{VICTIM}",
        record(8.0, "checkpoint.end", path=slices_of(VICTIM), kind="periodic", step=SAVED, **place),
    )
    shown = evidence(run)
    for name in ("removed", "directory"):
        del shown[name]
    shown.update(file=FILE, step=SAVED, before=BEFORE, after=BEFORE if renamed else AFTER, bytes=[400, 200])
    if renamed:
        shown["renamed"] = RENAMED
    return run


def evidence(run: GoodRun) -> dict[str, Any]:
    """What the harness has seen of the damage."""
    found: dict[str, Any] = run.only("fault.landed", fault=LOSS)["evidence"][0]
    return found
