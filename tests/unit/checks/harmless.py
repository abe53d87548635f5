"""Faults that stop no training, made in the good run before its kill, and a run without any fault."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from chaos.plan.job_effect import (
    NONE,
    STORAGE_DENIED,
    STORAGE_ERROR,
    STORAGE_FULL,
    STORAGE_GONE,
    STORAGE_READ_ONLY,
    VOLUME_GONE,
)
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import OWN_PLAN, GoodRun, Record, pid_of, record

MESH = ("pod-dns-gone", "pod-io-delay", "pod-network-delay", "pod-network-loss", "pod-network-partition")
"""Kinds that Chaos Mesh makes."""

HIT: Record = {"attempt": "train", "rank": 0, "pid": pid_of("train", 0)}
PLACE: Record = {"step": 3, "phase": "step.begin"}
STORAGE = {"signal": None, "mount": "tmpfs rw (rw,size=64k)"}
IN_POD = {
    "signal": None,
    "object": "m",
    "uid": "u",
    "pod": {"name": "a", "uid": "p"},
    "injected": ["train/a/ascend"],
}
EVIDENCE: dict[str, dict[str, Any]] = {
    "disk-full": {**STORAGE, "refused": "ENOSPC"},
    "read-only": {**STORAGE, "refused": "EROFS"},
    "io-error": {**STORAGE, "refused": "EIO"},
    "storage-gone": {**STORAGE, "refused": "ENOENT"},
    "node-volume-gone": {**STORAGE, "refused": "ENOENT"},
    "no-permission": {"signal": None, "directory": "immutable", "refused": "EPERM"},
    "slow-storage": {**STORAGE, "opened_after": 0.31},
    "storage-stall": {**STORAGE, "frozen": True},
    "clock-skew": {"signal": None, "act": "clock-skew", "seen": -3599.999},
    "cpu-load": {"signal": None, "beside": 2, "cores": [0, 1], "consumed": 0.01},
    "cpu-quota": {"signal": None, "group": "chaos-x-first-0", "throttled": 3},
    "node-cpu-quota": {"signal": None, "quota": 10_000, "throttled": 3},
    "dns-gone": {
        "signal": None,
        "cut": ["127.0.0.11"],
        "name": "chaos-0",
        "before": ["172.18.0.2"],
        "error": "[Errno -3] Temporary failure in name resolution",
        "address": "172.18.0.2",
        "reached": "refused",
    },
    "fd-limit": {"signal": None, "limit": 44, "left": 16},
    "memory-load": {"signal": None, "resident": 64},
    "freeze": {"signal": 19, "state": "stopped"},
    "network-delay": {"signal": None, "by": "relay", "passed": 9, "round_trip": 31.2, "echoes": 5},
    "network-loss": {"signal": None, "by": "relay", "passed": 190, "sent": 200, "lost": 9},
    "network-rate": {"signal": None, "kbit": 64, "bytes": 9000, "overlimits": 7},
    "partition": {
        "signal": None,
        "lost": [[0, 1], [1, 0]],
        "ways": 2,
        "connections": 3,
        "echoes": {"sent": 2, "answered": 0},
    },
    "port-blocked": {
        "signal": None,
        "port": 20000,
        "connections": 2,
        "lost": [[1, 0]],
        "passing": [[1, 0]],
        "ways": 1,
        "attempts": {"made": 1, "answered": 0},
        "attempts elsewhere": {"made": 1, "answered": 1},
    },
    **dict.fromkeys(MESH, IN_POD),
    "node-cordon": {"signal": None, "host": "worker-1", "unschedulable": True},
    "public-fault": {"signal": None, "host": "worker-1", "fault id": "run.first"},
    "connection-reset": {
        "signal": None,
        "port": 20000,
        "left": 0,
        "reset": [
            {
                "source": "10.77.0.6",
                "source_port": 40000,
                "target": "10.77.0.2",
                "target_port": 20000,
                "interface": 0,
                "inode": 7,
                "cookie": 3,
                "other cookie": 4,
                "confirmed": True,
            }
        ],
    },
    "terminate": {"signal": 15, "became": "taken by a handler", "caught": True, "pending": False},
}

EFFECTS = {
    "disk-full": STORAGE_FULL,
    "read-only": STORAGE_READ_ONLY,
    "io-error": STORAGE_ERROR,
    "storage-gone": STORAGE_GONE,
    "node-volume-gone": VOLUME_GONE,
    "no-permission": STORAGE_DENIED,
}
"""Of other kinds it is none."""

PARAMETERS: dict[str, dict[str, Any]] = {
    "slow-storage": {"delay": 0.3, "seconds": 1},
    "storage-stall": {"seconds": 1},
    "clock-skew": {"offset": -3600},
    "cpu-load": {"processes": 2, "seconds": 1},
    "cpu-quota": {"cores": 0.1, "seconds": 1},
    "node-cpu-quota": {"cores": 0.1, "seconds": 1},
    "dns-gone": {"seconds": 1},
    "fd-limit": {"spare": 16, "seconds": 1},
    "memory-load": {"megabytes": 64, "seconds": 1},
    "freeze": {"seconds": 1},
    "network-delay": {"milliseconds": 30, "jitter": 5, "seconds": 1},
    "network-loss": {"percent": 5, "seconds": 1},
    "network-rate": {"kbit": 64, "seconds": 1},
    "partition": {"seconds": 1},
    "port-blocked": {"port": "controller", "seconds": 1},
    "connection-reset": {"port": "controller"},
    **{kind: {"seconds": 1} for kind in MESH},
    "node-cordon": {"seconds": 1},
    "public-fault": {"seconds": 1},
}


def without_end(run: GoodRun, kind: str) -> GoodRun:
    """The same of a condition that lasts until the launch has ended, which is looked at then."""
    given = {key: value for key, value in PARAMETERS[kind].items() if key != "seconds"}
    with_fault(run, kind)
    (first, *others) = run.plan.faults
    run.replan(faults=(replace(first, parameters=given), *others))
    (ending,) = run.events("fault.ending", fault="first")
    run.drop("fault.ending", fault="first")
    run.add("harness", {**ending, **record(12.09, "fault.ending", attempt="train")})
    return run


def with_fault(run: GoodRun, kind: str, **changed: Any) -> GoodRun:
    """The good run with another fault that was made before the kill, with its evidence."""
    fault = PlannedFault("first", kind, (0,), PLACE, PARAMETERS.get(kind, {}), None, 9, EFFECTS.get(kind, NONE))
    run.replan(faults=(fault, *run.plan.faults))
    evidence = {"rank": 0, "pid": HIT["pid"], **EVIDENCE[kind], "barrier": PLACE, **changed}
    number = evidence["signal"]
    run.add("train-rank_0", record(10.201, "barrier.reached", fault="first", **PLACE, **HIT))
    made: Record = {"fault": "first", "kind": kind, "signal": number, "target_rank": 0, "start_time": 100}
    run.add("harness", record(10.202, "fault.injecting", **made, **HIT))
    if "act" in EVIDENCE[kind]:
        own = {key: value for key, value in EVIDENCE[kind].items() if key != "signal"}
        run.add("train-rank_0", record(10.2025, "fault.acting", fault="first", **own, **HIT))
    landed: Record = {"fault": "first", "kind": kind, "ranks": [0], "evidence": [evidence], **PLACE}
    run.add("harness", record(10.203, "fault.landed", attempt="train", **landed))
    if "seconds" in fault.parameters:
        still = [{"rank": 0, "pid": HIT["pid"], **EVIDENCE[kind]}]
        run.add("harness", record(11.21, "fault.ending", attempt="train", fault="first", evidence=still))
    run.add("harness", record(12.1, "fault.healed", fault="first", how="put back"))
    return run


def nothing_happens(run: GoodRun) -> None:
    """A run without any fault."""
    assert run.baseline is not None
    run.replan(mechanism=None, recoveries=(), checkpoint=None, faults=(), resumes=False, resume_step=None)
    run.saved.clear()
    run.log = run.log[:1]
    started = [event for event in run.files["harness.jsonl"] if event["event"] in ("run.start", "run.end", "hygiene")]
    found = list(run.events("rank.found", attempt="train"))
    run.files = copy.deepcopy(run.baseline)
    run.files["harness.jsonl"] = [*run.files["harness.jsonl"][:3], *found]
    for start in run.events("writer.start"):
        start["run"] = "r1"
    run.only("run.start").update(run="r1", plan=OWN_PLAN)
    for rank, one in enumerate(found):
        one["pid"] = 500 + rank
        code = record(20.0, "rank.exit", "train", rank, 500 + rank, signal=None, code=0)
        run.files["harness.jsonl"].append(code)
    ended = record(20.1, "launcher.exit", "train", pid=900, role="launcher", signal=None, code=0)
    run.files["harness.jsonl"].append(ended)
    run.files["harness.jsonl"].extend(event for event in started if event["event"] != "run.start")
