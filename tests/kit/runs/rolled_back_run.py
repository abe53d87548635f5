"""A run directory as a good rollback (TRE) leaves it, made without a job, to be spoilt one thing at a time.

The ranks, groups and states are those of good_run.py. Rank 1's gradients spike in step 8; all ranks go back to
the checkpoint of step 6 and train on in their own processes. No SDK takes part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from chaos.plan.job_effect import ABNORMAL
from chaos.plan.model import Plan
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.fault_tolerance import Watch
from chaos.plan.parts.response import Budget, Recovery
from tests.kit.fresh_copies import fresh_copies
from tests.kit.plans import changed
from tests.kit.runs.good_run import (
    LAST,
    OWN_PLAN,
    RANKS,
    GoodRun,
    Record,
    Saved,
    State,
    a_plan,
    agent_ended,
    began,
    digests_of,
    good_run,
    hex_of,
    loss_after,
    pid_of,
    record,
    run_ended,
    start_of,
    state_after,
)
from tests.kit.runs.repaired_run import place_of

SPIKE = 8
HELD = 6
SPIKER = 1
NORM = 7.5
THRESHOLD = 5.0
AT = 10 + 0.1 * (SPIKE - 1)
"""When the abnormal step was begun for the first time, in seconds."""

BACK_S = 0.5
"""From the beginning of the abnormal step to the beginning of the first step that is replayed."""

PHASES_S = {"detection": 0.18, "load": 0.1, "first step": 0.26, "caught up": 0.1}
RECORD = "job/checkpoints/abnormal_global_norm.json"
FAULT = "spike"
PLACE: Record = {"step": SPIKE, "phase": "allreduce.enter"}


def rolled_back_plan(repeat: int = 0) -> Plan:
    parameters: dict[str, Any] = {"norm": NORM, **({"repeat": repeat} if repeat else {})}
    return changed(
        a_plan(),
        scenario="rolled-back",
        faults=(PlannedFault(FAULT, "spike", (SPIKER,), dict(PLACE), parameters, None, 14, ABNORMAL),),
        mechanism="TRE",
        checkpoint=None,
        resumes=False,
        resume_step=None,
        recoveries=(Recovery("TRE", (FAULT,), HELD, reads_checkpoint=True),),
        comparable=Comparable(SPIKE - 1, SPIKE, "fault spike spikes again") if repeat else None,
        watch=Watch(THRESHOLD),
        checkpoint_interval=3,
        protection=("TRE",),
        budget=Budget(5.0, dict.fromkeys(PHASES_S, 1.0)),
        reasons=(),
        lines={"mechanism": 20},
    )


def checkpoint_of(rank: int, step: int) -> str:
    """No name is used again behind the rollback, so nothing is saved over an earlier step."""
    return f"/elsewhere/r1/job/checkpoints/rank_{rank}/mnist-1_{step}.ckpt"


def spiked(rank: int, step: int) -> State:
    """What a rank holds after a step behind a spike that nobody has taken back."""
    other = state_after(rank, step + 100)
    return {**other, "global_step": state_after(rank, step)["global_step"]}


def _step(at: float, rank: int, step: int, *, abnormal: bool = False, moved: bool = False) -> Iterator[Record]:
    place = place_of(rank)
    yield record(at, "step.begin", step=step, **place)
    if abnormal and rank == SPIKER:
        if at == AT:
            yield record(at + 0.01, "barrier.reached", fault=FAULT, **PLACE, **place)
        yield record(at + 0.03, "fault.scaled", fault=FAULT, **PLACE, factor=31.5, norm=NORM, **place)
    yield record(at + 0.06, "step.end", step=step, **place)
    states = digests_of(spiked(rank, step) if abnormal or moved else state_after(rank, step))
    yield record(
        at + 0.07,
        "digest",
        step=step,
        loss=(loss_after(rank, step) + (0.5 if moved else 0.0)).hex(),
        batch=hex_of("batch", rank, step),
        gradients={"norm": (NORM if abnormal else 1.5 / step).hex(), "digest": hex_of("gradients", step, abnormal)},
        parameters=states,
        cost_us=100.0,
        **place,
    )
    if step % 3 == 0:
        saved: Record = {"kind": "periodic", "path": checkpoint_of(rank, step), "step": step}
        yield record(at + 0.08, "checkpoint.begin", **saved, **place)
        yield record(at + 0.09, "checkpoint.end", **saved, **place)


def _rank(rank: int, repeat: int) -> list[Record]:
    place = place_of(rank)
    records = [
        start_of("agent", 2.0, **place),
        record(2.1, "agent.start", python="3.11", argv=["train.py"], **place),
        *began(9.0, rank, 0, **place_of(rank)),
    ]
    for step in range(1, SPIKE + 1):
        records += _step(10 + 0.1 * (step - 1), rank, step, abnormal=step == SPIKE)
    path = checkpoint_of(rank, HELD)
    records += [
        record(AT + 0.2, "load.begin", path=path, **place),
        record(AT + 0.3, "load.end", path=path, parameters=6, **place),
        *began(AT + 0.4, rank, HELD, **place_of(rank)),
    ]
    for step in range(HELD + 1, LAST + 1):
        again = bool(repeat) and step == SPIKE
        moved = bool(repeat) and step > SPIKE
        records += _step(AT + BACK_S + 0.1 * (step - HELD - 1), rank, step, abnormal=again, moved=moved)
    return [*records, *agent_ended(AT + BACK_S + 1.0, **place)]


def _harness() -> list[Record]:
    evidence = [
        {
            "rank": SPIKER,
            "pid": pid_of("train", SPIKER),
            "signal": None,
            "factor": 31.5,
            "norm": NORM,
            "barrier": dict(PLACE),
        }
    ]
    act: Record = {"fault": FAULT, "kind": "spike", "signal": None, "target_rank": SPIKER, "start_time": 100 + SPIKER}
    records = [
        start_of("harness", 0.0),
        record(0.1, "run.start", run="r1", scenario="rolled-back", cell="", seed=1, plan=OWN_PLAN),
        record(1.0, "attempt.start", attempt="train", argv=["msrun"], cwd="job"),
        record(1.1, "launcher.found", attempt="train", pid=900, role="launcher", start_time=90),
        record(1.2, "launcher.found", attempt="train", pid=901, role="scheduler", start_time=91),
        *(record(2.5, "rank.found", start_time=100 + rank, **place_of(rank)) for rank in range(RANKS)),
        record(AT + 0.02, "fault.injecting", **act, **place_of(SPIKER)),
        record(
            AT + 0.05,
            "fault.landed",
            attempt="train",
            fault=FAULT,
            kind="spike",
            ranks=[SPIKER],
            evidence=evidence,
            **PLACE,
        ),
    ]
    end = AT + BACK_S + 2.0
    records += [record(end, "rank.exit", signal=None, code=0, **place_of(rank)) for rank in range(RANKS)]
    records += [
        record(end + 0.1, "fault.healed", fault=FAULT, how="nothing to put back"),
        record(end + 0.2, "launcher.exit", attempt="train", pid=900, role="launcher", signal=None, code=0),
        record(end + 0.3, "attempt.end", attempt="train"),
        *run_ended(end + 1),
    ]
    return records


def log_of(repeat: int = 0) -> str:
    """The log of a rank."""
    head = "2026-11-21 01:28:56,320 - global_norm[global_norm.py:99] - INFO - "
    lines = [
        f"{head}Current global norm [{NORM}] is greater equal than threshold {THRESHOLD}, stop training...",
        f"{head}Call barrier before throw TREError.",
        "[WARNING] ME(26612:140535643880320,MainProcess):2026-11-21-01:28:56.320.000 [mindspore/train/model.py:320] "
        f"Resume training after TREError from step {HELD}.",
    ]
    if repeat:
        lines.append(
            f"{head}The global norm [{NORM}] of step {SPIKE} is still greater or equal than threshold {THRESHOLD}, "
            "continue training."
        )
    return "".join(f"{line}\n" for line in lines)


@fresh_copies
def rolled_back_run(repeat: int = 0) -> GoodRun:
    """A run in which TRE has answered the spike."""
    run = GoodRun(plan=rolled_back_plan(repeat), baseline=good_run().baseline)
    run.files["harness.jsonl"] = _harness()
    for rank in range(RANKS):
        run.files[f"train-rank_{rank}-{pid_of('train', rank)}.jsonl"] = _rank(rank, repeat)
        run.others[f"logs/train/worker_{rank}.log"] = log_of(repeat).encode()
        newest = f"job/{checkpoint_of(rank, LAST).partition('/job/')[2]}"
        state = spiked(rank, LAST) if repeat else state_after(rank, LAST)
        run.others[newest] = Saved(newest, state, {}).content()
    run.others[RECORD] = json.dumps({str(SPIKE): [NORM] * (1 + repeat)}).encode()
    step: Record = {"record": "step", "id": "job", "fault": None, "action": "end", "arguments": {}, "note": "end it"}
    close = {"record": "close", "id": "job", "outcome": "done"}
    run.others["undo.jsonl"] = "".join(json.dumps(one) + "\n" for one in (step, close)).encode()
    return run
