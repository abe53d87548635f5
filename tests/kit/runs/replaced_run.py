"""A run directory as a good rescheduling (ARF) leaves it, made without a job, to be spoilt one thing at a time.

The ranks, groups and states are those of tests.kit.runs.good_run. Rank 2 is killed at phase forward of a step; its new
process gets the state of rank 0, and all train on from the step before.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.plan.job_effect import DEATH
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Budget, Recovery
from tests.kit.fresh_copies import fresh_copies
from tests.kit.plans import changed
from tests.kit.runs.good_run import (
    LAST,
    RANKS,
    SDK_FILE,
    UNDO,
    UNDONE,
    GoodRun,
    Record,
    a_plan,
    agent_ended,
    agent_started,
    began,
    good_run,
    handled,
    job_started,
    ledger,
    pid_of,
    record,
    run_ended,
    start_of,
    step_of,
)

STRUCK = 6
HELD = STRUCK - 1
VICTIM, SOURCE = 2, 0
NEW_PID = 3000 + VICTIM
AT = 10 + 0.1 * (STRUCK - 1)
"""When the struck step was begun for the first time, in seconds."""

LATE = 6.0
"""From then to the beginning of its replay."""

PHASES_S = {"detection": 0.2, "stop": 0.5, "restart": 2.2, "rebuild": 2.0, "repair": 0.4, "first step": 0.64}
"""What the recovery takes, in seconds."""


def place_of(rank: int, *, new: bool = False) -> Record:
    return {"attempt": "train", "rank": rank, "pid": NEW_PID if new else pid_of("train", rank)}


def replaced_plan() -> Plan:
    fault = PlannedFault("kill", "kill", (VICTIM,), {"step": STRUCK, "phase": "forward"}, {}, None, 14, DEATH)
    return changed(
        a_plan(),
        scenario="replaced",
        faults=(fault,),
        mechanism="ARF",
        checkpoint=None,
        resumes=False,
        resume_step=None,
        recoveries=(Recovery("ARF", ("kill",), HELD, restarted=(VICTIM,), copied=(VICTIM,)),),
        protection=("ARF",),
        budget=Budget(20.0, dict.fromkeys(PHASES_S, 5.0)),
        reasons=(),
        lines={"mechanism": 20, "recovery": 26},
    )


def _first_steps(rank: int) -> Iterator[Record]:
    place = place_of(rank)
    yield from agent_started(**place)
    yield from began(9.0, rank, 0, **place)
    for step in range(1, STRUCK):
        yield from step_of(10 + 0.1 * (step - 1), rank, step, **place)
    yield record(AT, "step.begin", step=STRUCK, **place)


def _last_steps(rank: int, place: Record) -> Iterator[Record]:
    yield from began(AT + LATE - 0.5, rank, HELD, **place)
    for step in range(STRUCK, LAST + 1):
        yield from step_of(10 + 0.1 * (step - 1) + LATE, rank, step, **place)
    yield from agent_ended(20.0, **place)


def _survivor(rank: int) -> list[Record]:
    place = place_of(rank)
    records = [
        *_first_steps(rank),
        *handled(AT + 0.5, "stop", place),
        *handled(AT + 0.6, "clean", place),
        *handled(AT + 3.0, "rebuild_group", place),
    ]
    if rank == SOURCE:
        records += handled(AT + 5.0, "repair", place, step=HELD)
    return [*records, *_last_steps(rank, place)]


def _new() -> list[Record]:
    place = place_of(VICTIM, new=True)
    return [
        start_of("agent", AT + 1.5, **place),
        record(AT + 1.6, "agent.start", python="3.11", argv=["train.py"], **place),
        record(AT + 2.0, "sdk.imported", file=SDK_FILE, **place),
        record(AT + 4.5, "train.joins", **place),
        *handled(AT + 5.0, "repair", place, step=HELD),
        *_last_steps(VICTIM, place),
    ]


def _harness() -> list[Record]:
    barrier: Record = {"step": STRUCK, "phase": "forward"}
    victim = place_of(VICTIM)
    evidence = [{"rank": VICTIM, "pid": victim["pid"], "signal": 9, "barrier": dict(barrier)}]
    landed: Record = {"fault": "kill", "kind": "kill", "ranks": [VICTIM], **barrier}
    act: Record = {"fault": "kill", "kind": "kill", "signal": 9, "target_rank": VICTIM, "start_time": 102}
    ended = [place_of(rank, new=rank == VICTIM) for rank in range(RANKS)]
    return [
        *job_started("replaced"),
        *(record(2.5, "rank.found", start_time=100 + rank, **place_of(rank)) for rank in range(RANKS)),
        record(AT + 0.1, "fault.injecting", **act, **victim),
        record(AT + 0.12, "rank.exit", signal=9, code=None, **victim),
        record(AT + 0.13, "fault.landed", attempt="train", evidence=evidence, **landed),
        record(AT + 1.7, "rank.found", start_time=300, **place_of(VICTIM, new=True)),
        *(record(21.0, "rank.exit", signal=None, code=0, **place) for place in ended),
        record(21.1, "fault.healed", fault="kill", how="the process is gone"),
        record(21.2, "launcher.exit", attempt="train", pid=900, role="launcher", signal=None, code=0),
        record(21.3, "attempt.end", attempt="train"),
        *run_ended(22.0),
    ]


@fresh_copies
def replaced_run() -> GoodRun:
    """Rank 2 is killed and replaced; rank 0 gives its state."""
    run = GoodRun(plan=replaced_plan(), baseline=good_run().baseline)
    run.files["harness.jsonl"] = _harness()
    for rank in range(RANKS):
        name = f"train-rank_{rank}-{pid_of('train', rank)}.jsonl"
        run.files[name] = _survivor(rank) if rank != VICTIM else list(_first_steps(rank))
    barrier = record(AT + 0.05, "barrier.reached", fault="kill", step=STRUCK, phase="forward", **place_of(VICTIM))
    run.files[f"train-rank_{VICTIM}-{pid_of('train', VICTIM)}.jsonl"].append(barrier)
    run.files[f"train-rank_{VICTIM}-{NEW_PID}.jsonl"] = _new()
    run.log = [
        (2.2, "nextState: STATE_OP_NORMAL"),
        (AT + 0.3, "nextState: STATE_OP_ABNORMAL"),
        (AT + 0.4, "nextState: STATE_OP_ENV_CLEAR"),
        (AT + 0.5, "start notify all device stop..."),
        (AT + 0.6, "start notify all device clean..."),
        (AT + 0.7, "notify all device stop & clean ok!"),
        (AT + 0.8, "nextState: STATE_OP_REPAIR"),
        (AT + 0.81, "Start do arf repair"),
        (AT + 3.1, "controller:0 execute hccl process group destroy & rebuid success"),
        (AT + 5.1, "start rollback"),
        (AT + 5.2, "Controller:0 rollback success"),
        (AT + 5.4, "nextState: STATE_OP_NORMAL"),
    ]
    run.others["undo.jsonl"] = ledger(UNDO, UNDONE)
    return run
