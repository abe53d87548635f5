"""Faults that stop no training, made in the good run before its kill."""

from __future__ import annotations

from typing import Any

from chaos.plan.model import PlannedFault
from tests.unit.good_run import GoodRun, Record, pid_of, record

HIT: Record = {"attempt": "train", "rank": 0, "pid": pid_of("train", 0)}
PLACE: Record = {"step": 3, "phase": "step.begin"}
STORAGE = {"signal": None, "mount": "tmpfs rw (rw,size=64k)"}
EVIDENCE: dict[str, dict[str, Any]] = {
    "disk-full": {**STORAGE, "refused": "ENOSPC"},
    "read-only": {**STORAGE, "refused": "EROFS"},
    "terminate": {"signal": 15, "became": "taken by a handler", "caught": True, "pending": False},
}

EFFECTS = {"disk-full": "storage full", "read-only": "storage read-only", "terminate": "none"}


def with_fault(run: GoodRun, kind: str, **changed: Any) -> GoodRun:
    """The good run with another fault that was made before the kill, with its evidence."""
    fault = PlannedFault("first", kind, (0,), PLACE, {}, None, 9, EFFECTS[kind])
    run.replan(faults=(fault, *run.plan.faults))
    evidence = {"rank": 0, "pid": HIT["pid"], **EVIDENCE[kind], "barrier": PLACE, **changed}
    number = evidence["signal"]
    run.add("train-rank_0", record(10.201, "barrier.reached", fault="first", **PLACE, **HIT))
    made: Record = {"fault": "first", "kind": kind, "signal": number, "target_rank": 0, "start_time": 100}
    run.add("harness", record(10.202, "fault.injecting", **made, **HIT))
    landed: Record = {"fault": "first", "kind": kind, "ranks": [0], "evidence": [evidence], **PLACE}
    run.add("harness", record(10.203, "fault.landed", attempt="train", **landed))
    run.add("harness", record(12.1, "fault.healed", fault="first", how="put back"))
    return run
