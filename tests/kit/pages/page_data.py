"""Data of report pages, as `chaos.report.page.data` collects it, made without a run.

Four ranks on two nodes, in the replica groups [0, 2] and [1, 3], train twelve steps. Rank 2 is killed at the end of
step 5, TTP saves, and another launch goes on at step 6. `failing` has a parameter that somebody changed in the
checkpoint; `hostile` has markup in every text of a job; `empty` is a run that has recorded nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Data = dict[str, Any]

RANKS, STEPS, VICTIM, FAULT_STEP = 4, 12, 2, 5
STATES = (("NORMAL", 1.4, 5.11), ("ABNORMAL", 5.11, 5.2), ("DUMP", 5.2, 5.55), ("EXIT", 5.55, 5.8))
FAULT_T = 4.9
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>&amp;"

SCENARIO = """\
chaos: 1
name: kill-rank
description: >
  A rank dies between two checkpoints. TTP saves at the step before, and the next launch goes on from there.
job:
  kind: plain
  ranks: 4
  steps: 12
  parallel: {data: 2, model: 2}
mechanisms: [TTP]
checkpoints:
  every: 50
faults:
  - id: kill
    kind: kill
    ranks: [2]
    at: {step: 5, phase: step.end}
expect:
  resume: {step: 6}
  loss: {equal: baseline}
budgets:
  detection: 2 s
  save: 30 s
  total: 180 s""".splitlines()


REASONS = [
    "Rank 2 is killed at the end of step 5. Its replica, rank 0, has the same state, so the step can be saved.",
    "TTP saves an end-of-life checkpoint of step 5: ranks 0 and 1 are alive and hold every shard. Source: MindIO TFT, "
    "User Guide, Interfaces, tft_start_processor.",
    "The job is started again and loads that checkpoint, so training goes on at step 6.",
]

PASSED = [
    ("fault", "rank 2 is killed by SIGKILL in step 5", "exit status -9 from the kernel", "history/harness.jsonl:41"),
    ("mechanism", "TTP acts after rank 2 has died", "dump of step 5 on ranks 0 and 1", "logs/train/worker_0.log:124"),
    ("save", "rank 0 saves step 5", "ckpt/rank_0/kill-5_1.ckpt, 12 parameters", "history/train-rank_0-1.jsonl:33"),
    ("save", "rank 1 saves step 5", "ckpt/rank_1/kill-5_1.ckpt, 12 parameters", "history/train-rank_1-1.jsonl:33"),
    ("resume", "training goes on at step 6", "step 6 is the first on ranks 0-3", "history/resume-rank_0-1.jsonl:9"),
    *(
        ("loss", f"step {step}: the loss is the fault-free run's", "equal, bit for bit", f"history/losses.jsonl:{step}")
        for step in range(1, STEPS + 1)
    ),
    ("recovery", "detection takes at most 2 s", "0.212 s", "history/harness.jsonl:44"),
    ("processes", "no process of the job is left", "none of 8", "history/harness.jsonl:70"),
]


def passing() -> Data:
    """Return the data of a run whose TTP recovery is good."""
    return {
        "run": "kill-rank-20261127-053852-41c7",
        "scenario_name": "kill-rank",
        "cell": "",
        "started": "2026-11-27T05:38:52+00:00",
        "seconds": 12.4,
        "verdict": {"word": "pass", "sentence": "", "passed": len(PASSED), "failed": 0, "unknown": 0},
        "statements": [_statement(check, "pass", *texts) for check, *texts in PASSED],
        "excerpts": {},
        "scenario": {"file": "kill-rank.yaml", "lines": SCENARIO},
        "not_checked": [{"name": "device", "what": "the state of the cards", "reason": "the job runs on the CPU"}],
        "timeline": _timeline(),
        "recoveries": [_recovery()],
        "curves": _curves(),
        "checkpoints": _checkpoints(),
        "plan": {
            "facts": [
                ["ranks", "4 on 2 nodes"],
                ["replica groups", "2 of 2 ranks"],
                ["mechanism that must act", "TTP"],
                ["end-of-life checkpoint", "step 5, saved by ranks 0-1"],
                ["resume", "the job is started again and goes on at step 6"],
                ["last step", "12"],
            ],
            "reasons": REASONS,
            "faults": [["kill", "kill rank 2, step 5, phase step.end", 14]],
        },
        "environment": {
            "facts": [
                ["chaos", "0.1.0"],
                ["python", "3.11.9"],
                ["numpy", "1.26.4"],
                ["system", "Linux 5.10 aarch64"],
                ["seed", "1"],
            ],
            "simulated": [
                ["plain Python training loop; no framework is tested", "job"],
                ["mindio_ttp, a stand-in of MindIO TFT", "SDK"],
            ],
            "command": "chaos run kill-rank.yaml --seed 1",
        },
        "notes": [],
    }


def failing() -> Data:
    """Return the data of the same run with a parameter that was changed in the checkpoint before the resume."""
    data = passing()
    data["run"] = "kill-rank-20261127-060214-9b03"
    sentence = (
        "The optimizer's moments of rank 0 were not restored: 1 of 12 parameters differs; losses differ from step 7."
    )
    cause = _statement(
        "resume",
        "fail",
        "moments.layer1.bias of rank 0 is what step 5 saved: digest 51f3c09a",
        "digest e07b2d11 after loading ckpt/rank_0/kill-5_1.ckpt",
        "history/resume-rank_0-1.jsonl:8",
        "logs/resume/worker_0.log:57",
    )
    cause |= {"order": 0, "line": 18}
    cause["facts"] = [
        ["ranks", "0"],
        ["step", "5"],
        ["file", "ckpt/rank_0/kill-5_1.ckpt"],
        ["parameters", "moments.layer1.bias (1 of 19 differ)"],
        ["state expected", "51f3c09a"],
        ["state seen", "e07b2d11"],
    ]
    cause["where"][0]["excerpt"], cause["where"][1]["excerpt"] = "e1", "e2"
    follow = [
        _statement(
            "loss",
            "fail",
            f"step {step}: the loss is the fault-free run's",
            f"{2.31 / step + 0.0007 * (step - 6):.6f} instead of {2.31 / step:.6f}",
            f"history/resume-rank_0-1.jsonl:{step * 3}",
        )
        | {"order": step - 6, "line": 19}
        for step in range(7, STEPS + 1)
    ]
    unknown = _statement("recovery", "unknown", "first step takes at most 30 s", "its end is not recorded", "plan.json")
    passed = [statement for statement in data["statements"] if statement["check"] != "loss"]
    data["statements"] = [cause, *follow, unknown, *passed]
    data["verdict"] = {"word": "fail", "sentence": sentence, "passed": len(passed), "failed": 7, "unknown": 1}
    data["excerpts"] = {
        "e1": _excerpt("history/resume-rank_0-1.jsonl", 8, _history_line),
        "e2": _excerpt("logs/resume/worker_0.log", 57, _log_line),
    }
    curves = data["curves"]
    for index, step in enumerate(curves["steps"]):
        if step >= 7:
            curves["run"]["loss"][index] += 0.0007 * (step - 6)
            curves["run"]["norm"][index] += 0.004 * (step - 6)
    curves["first_difference"] = {"step": 7, "curve": "loss"}
    data["recoveries"][0]["phases"][1]["budget"] = 0.05
    data["checkpoints"]["cells"][0] |= {"state": "damaged", "text": "rank 0, step 5: one parameter was changed"}
    return data


def cut_short() -> Data:
    """Return the data of the same run, ended after five steps."""
    data = passing()
    for series in data["curves"]["run"].values():
        series[5:] = [None] * (STEPS - 5)
    data["curves"]["compared"] = 5
    return data


def empty() -> Data:
    """Return the data of a run that has recorded nothing."""
    series: dict[str, list[float | None]] = {"loss": [], "norm": [], "step_seconds": []}
    return passing() | {
        "cell": "seed=1",
        "started": None,
        "seconds": None,
        "verdict": {"word": "unknown", "sentence": "", "passed": 0, "failed": 0, "unknown": 0},
        "statements": [],
        "excerpts": {},
        "scenario": {"file": "kill-rank.yaml", "lines": []},
        "not_checked": [],
        "timeline": {"rows": [], "harness": [], "planned": [], "phases": [], "states": []},
        "recoveries": [],
        "curves": {
            "steps": [],
            "run": series,
            "baseline": None,
            "faults": [],
            "first_difference": None,
            "compared": 0,
            "note": "",
        },
        "checkpoints": {"steps": [], "ranks": [], "groups": [], "cells": [], "note": ""},
        "plan": {"facts": [], "reasons": [], "faults": []},
        "environment": {"facts": [], "simulated": [], "command": ""},
        "notes": ["the history ends in the middle of a line"],
    }


def hostile() -> Data:
    """Return the failing run with markup in each text that can come from a job or from a scenario."""

    def spoil(value: Any) -> Any:
        if isinstance(value, str) and value not in WORDS:
            return f"{value} {HOSTILE}"
        if isinstance(value, dict):
            return {key: spoil(item) for key, item in value.items()}
        return [spoil(item) for item in value] if isinstance(value, list) else value

    data: Data = spoil(failing())
    return data


WORDS = {
    "pass",
    "fail",
    "unknown",
    "e1",
    "e2",
    "loss",
    "norm",
    "saved",
    "damaged",
    "lost",
    "cut off",
    "failing",
    "missing",
} | {
    *("fault", "held", "detection", "exit", "sdk", "error", "train", "launch", "heal"),
    *("start", "load", "compile", "save", "pause", "handler", "stop", "repair"),
}
"""Words of the contract itself, which never come from a job."""


def _statement(check: str, verdict: str, expected: str, seen: str, *places: str) -> Data:
    where = [{"text": place, "excerpt": None} for place in places]
    return {
        "check": check,
        "verdict": verdict,
        "expected": expected,
        "seen": seen,
        "order": None,
        "line": None,
        "where": where,
        "facts": [["ranks", "0"]],
    }


def _excerpt(file: str, line: int, text: Callable[[int], str]) -> Data:
    first = line - 4
    return {
        "file": file,
        "first": first,
        "marked": [line],
        "lines": [text(number) for number in range(first, line + 5)],
    }


def _history_line(number: int) -> str:
    return (
        f'{{"seq":{number},"event":"parameter","rank":0,"name":"moments.layer1.bias","digest":"e07b2d11",'
        f'"file":"ckpt/rank_0/kill-5_1.ckpt"}}'
    )


def _log_line(number: int) -> str:
    return f"2026-11-27 13:38:{number:02},417 [INFO] rank 0: loaded parameter {number - 50} of 12 from kill-5_1.ckpt"


def mark(t: float, kind: str, text: str) -> Data:
    return {"t": t, "kind": kind, "text": text}


def span(kind: str, begin: float, end: float, text: str, name: str | None = None) -> Data:
    return {"kind": kind, "name": name or kind, "begin": begin, "end": end, "text": text}


def _timeline() -> Data:
    bands = (("detection", 4.9, 5.11), ("stop", 5.11, 5.2), ("save", 5.2, 5.55), ("exit", 5.55, 5.8))
    later = (("relaunch", 5.8, 8.4), ("load", 8.4, 8.7), ("compile", 8.7, 9.3), ("first step", 9.3, 9.6))
    return {
        "rows": [_row(rank) for rank in range(RANKS)],
        "harness": [
            mark(0.1, "launch", "attempt.start: attempt train (history/harness.jsonl:12)"),
            mark(FAULT_T - 0.05, "fault", "fault.injecting: fault kill, ranks [2] (history/harness.jsonl:40)"),
            mark(FAULT_T, "fault", "fault.landed: fault kill, step 5 (history/harness.jsonl:41)"),
            mark(5.8, "launch", "attempt.start: attempt resume (history/harness.jsonl:52)"),
            mark(12.2, "exit", "launcher.exit: status 0 (history/harness.jsonl:70)"),
        ],
        "planned": [
            {
                "id": "kill",
                "t": FAULT_T,
                "noticed": 5.11,
                "kind": "kill",
                "step": 5,
                "phase": "step.end",
                "ranks": [VICTIM],
                "text": "kill rank 2, step 5, phase step.end",
                "seen": "landed in step 5, step.end, 4.900 s after the run's start (history/harness.jsonl:41); "
                "noticed 0.210 s after the act",
            }
        ],
        "phases": [{"name": name, "begin": begin, "end": end} for name, begin, end in (*bands, *later)],
        "states": [
            {"name": name, "begin": begin, "end": end, "text": f"{name} (logs/train/ttp/ttp_log.log.4100:{line})"}
            for line, (name, begin, end) in enumerate(STATES, 11)
        ],
    }


def _row(rank: int) -> Data:
    shift = 0.03 * rank
    first_steps = [[step, step, 1.9 + shift + 0.6 * (step - 1), 2.4 + shift + 0.6 * (step - 1)] for step in range(1, 6)]
    first_steps[-1][3] = min(first_steps[-1][3], FAULT_T)
    spans = [span("start", 0.2 + shift, 1.3 + shift, "from the process's start to its training")]
    spans.append(span("compile", 1.3 + shift, 1.9 + shift, "graph of 12 parameters"))
    marks = [mark(1.9 + shift, "train", "train.begin")]
    end, exit_text = FAULT_T, "SIGKILL"
    if rank != VICTIM:
        end, exit_text = 5.75 + shift, "code 1"
        marks += [mark(5.1 + shift, "detection", "sdk.report_error: rank 2 has gone")]
        marks.append(mark(5.12 + shift, "sdk", "sdk.handler: stop"))
        spans.append(span("held", FAULT_T - 0.1, FAULT_T, "barrier.reached: step 5, step.end"))
        spans.append(span("handler", 5.11 + shift, 5.6 + shift, "handler.enter: name save_ckpt", "save_ckpt"))
        spans.append(span("stop", 5.11 + shift, 5.2 + shift, "stop of the device"))
        if rank in (0, 1):
            spans.append(span("save", 5.2 + shift, 5.55 + shift, f"save_ckpt of step 5 to ckpt/rank_{rank}"))
    marks.append(mark(end, "exit", f"{exit_text} (history/harness.jsonl:4{rank})"))
    again = [
        [step, step, 9.3 + shift + 0.4 * (step - 6), 9.66 + shift + 0.4 * (step - 6)] for step in range(6, STEPS + 1)
    ]
    resumed = [span("start", 5.9 + shift, 8.4, "from the process's start to its training")]
    resumed.append(span("load", 8.4, 8.7 + shift, "load_checkpoint of ckpt/rank_0/kill-5_1.ckpt"))
    resumed.append(span("compile", 8.7 + shift, 9.3 + shift, "graph of 12 parameters"))
    return {
        "label": f"rank {rank}",
        "rank": rank,
        "node": rank // 2,
        "group": rank % 2,
        "processes": [
            process("train", 4100 + rank, 0.2 + shift, end, exit_text, first_steps, spans, marks),
            process("resume", 4180 + rank, 5.9 + shift, 12.2, "code 0", again, resumed, [mark(12.2, "exit", "code 0")]),
        ],
    }


def process(
    attempt: str, pid: int, begin: float, end: float, exit_text: str, steps: Any, spans: Any, marks: Any
) -> Data:
    return {
        "attempt": attempt,
        "pid": pid,
        "begin": begin,
        "end": end,
        "exit": exit_text,
        "steps": steps,
        "spans": spans,
        "marks": marks,
    }


def _recovery() -> Data:
    measured: list[tuple[str, float | None, float | None, float | None]] = [
        ("detection", 0.21, 2.0, None),
        ("stop", 0.09, 5.0, None),
        ("save", 0.35, 30.0, None),
        ("exit", 0.25, 10.0, None),
        ("relaunch", 2.6, 60.0, 1.1),
        ("load", 0.3, 30.0, None),
        ("compile", 0.6, 60.0, 0.6),
        ("first step", 0.3, 30.0, 0.36),
        ("caught up", None, None, None),
    ]
    phases, begin = [], FAULT_T
    for name, seconds, budget, fault_free in measured:
        reason = "" if seconds is not None else "nothing was trained again"
        start = begin if seconds is not None else None
        phases.append(
            {
                "name": name,
                "begin": start,
                "seconds": seconds,
                "budget": budget,
                "fault_free": fault_free,
                "reason": reason,
            }
        )
        begin = round(begin + (seconds or 0.0), 6)
    return {
        "mechanism": "TTP",
        "faults": ["kill"],
        "phases": phases,
        "total": 4.7,
        "budget": 180.0,
        "reason": "",
        "rollback": 0.0,
        "rollback_budget": 2,
    }


def _curves() -> Data:
    steps = list(range(1, STEPS + 1))
    loss = [2.31 / step for step in steps]
    norm = [1.4 - 0.05 * step for step in steps]
    return {
        "steps": steps,
        "run": {"loss": list(loss), "norm": list(norm), "step_seconds": [0.5] * 5 + [0.36] * 7},
        "baseline": {"loss": loss, "norm": norm, "step_seconds": [0.49] * 5 + [0.37] * 7},
        "faults": [{"step": 5, "text": "kill rank 2"}],
        "first_difference": None,
        "compared": STEPS,
        "note": "Loss and norm are those of rank 0. The step time is the slowest rank's.",
    }


def _checkpoints() -> Data:
    cells = [cell(rank, 5, [rank, rank + 2], kind="end-of-life", planned=True) for rank in (0, 1)]
    cells += [cell(rank, 3, []) for rank in range(RANKS)]
    cells[-1] |= {"state": "cut off", "text": "rank 3, step 3: periodic checkpoint, cut off"}
    return {"steps": [3, 5], "ranks": [0, 1, 2, 3], "groups": [[0, 2], [1, 3]], "cells": cells, "note": ""}


def cell(rank: int, step: int, loaded_by: list[int], kind: str = "periodic", planned: bool = False) -> Data:
    return {
        "rank": rank,
        "step": step,
        "file": f"checkpoints/rank_{rank}/kill-{step}_1.ckpt",
        "kind": kind,
        "state": "saved",
        "loaded_by": loaded_by,
        "tried_by": [],
        "planned": planned,
        "text": f"rank {rank}, step {step}: {kind} checkpoint, saved (history/train-rank_{rank}-1.jsonl:33)",
    }
