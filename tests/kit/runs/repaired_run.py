"""A run directory as good online repairs leave it, made without a job, to be spoilt one thing at a time.

The ranks, groups and states are those of good_run.py. An error is raised at phase forward of a step: the step
before is the common one, and all ranks train on from there in the same processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.plan.job_effect import COMMUNICATION, MEMORY
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Budget, Recovery
from tests.kit.fresh_copies import fresh_copies
from tests.kit.plans import changed
from tests.kit.runs.good_run import (
    GROUPS,
    LAST,
    RANKS,
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
    step_of,
)

STRUCK = 6
"""Step at which the first error is raised."""

REPAIR_S = 0.9
"""From the beginning of the struck step to the beginning of its replay."""

PHASES_S = {"detection": 0.15, "stop": 0.2, "repair": 0.25, "first step": 0.2}
"""What a repair in this run takes, in seconds."""

EFFECTS = {"uce": MEMORY, "hcce": COMMUNICATION}
TEXTS = {"uce": "UCEError error occurs, error_code=507053.", "hcce": "HCCEError error occurs, error_code=507904."}


@dataclass(frozen=True)
class Strike:
    """One error: its kind, and the ranks and the step at which it is raised."""

    kind: str
    ranks: tuple[int, ...] = (1,)
    step: int = STRUCK

    @property
    def fault(self) -> str:
        return f"{self.kind}-{self.step}"

    @property
    def held(self) -> int:
        """The step that all ranks hold after the repair."""
        return self.step - 1

    @property
    def repairing(self) -> tuple[int, ...]:
        """Ranks on which the handler ``repair`` is called: the broken ones and the last other one of their group."""
        if self.kind == "hcce":
            return ()
        groups = [group for group in GROUPS if set(self.ranks).intersection(group)]
        return tuple(sorted({*self.ranks, *(max(set(group) - set(self.ranks)) for group in groups)}))


def place_of(rank: int) -> Record:
    return {"attempt": "train", "rank": rank, "pid": pid_of("train", rank)}


def begin_of(strikes: tuple[Strike, ...], number: int) -> float:
    """When the step that strike ``number`` hits was begun for the first time, in seconds."""
    return 10 + 0.1 * (strikes[number].step - 1) + REPAIR_S * number


def repaired_plan(strikes: tuple[Strike, ...]) -> Plan:
    faults = tuple(
        PlannedFault(
            strike.fault,
            strike.kind,
            strike.ranks,
            {"step": strike.step, "phase": "forward"},
            {},
            None,
            14,
            EFFECTS[strike.kind],
        )
        for strike in strikes
    )
    return changed(
        a_plan(),
        scenario="repaired",
        faults=faults,
        mechanism="UCE" if any(strike.kind == "uce" for strike in strikes) else "HCCE",
        checkpoint=None,
        resumes=False,
        resume_step=None,
        recoveries=tuple(
            Recovery("UCE", (strike.fault,), strike.held, copied=strike.ranks)
            if strike.kind == "uce"
            else Recovery("HCCE", (strike.fault,), strike.held)
            for strike in strikes
        ),
        protection=("UCE", "HCCE"),
        budget=Budget(5.0, dict.fromkeys(PHASES_S, 1.0)),
        reasons=(),
        lines={"mechanism": 20, "recovery": 26, "recovery.detection": 27},
    )


def _repair(at: float, rank: int, strike: Strike) -> Iterator[Record]:
    """From the beginning of the struck step to the last moment before its replay."""
    yield record(at, "step.begin", step=strike.step, **place_of(rank))
    if rank in strike.ranks:
        fields: Record = {"fault": strike.fault, "step": strike.step, "phase": "forward"}
        yield record(at + 0.05, "barrier.reached", **fields, **place_of(rank))
        yield record(at + 0.11, "fault.raised", **fields, text=TEXTS[strike.kind], **place_of(rank))
    yield from handled(at + 0.3, "stop", place_of(rank))
    yield from handled(at + 0.35, "clean", place_of(rank))
    if rank in strike.repairing:
        yield from handled(at + 0.5, "repair", place_of(rank), step=strike.held)
    yield from began(at + 0.6, rank, strike.held, **place_of(rank))


def _rank(rank: int, strikes: tuple[Strike, ...]) -> list[Record]:
    place = place_of(rank)
    records = [*agent_started(**place), *began(9.0, rank, 0, **place)]
    late = 0.0
    struck = {strike.step: strike for strike in strikes}
    for step in range(1, LAST + 1):
        at = 10 + 0.1 * (step - 1) + late
        if step in struck:
            records.extend(_repair(at, rank, struck[step]))
            late += REPAIR_S
            at += REPAIR_S
        records.extend(step_of(at, rank, step, **place))
    return [*records, *agent_ended(11.5 + late, **place)]


def _harness(strikes: tuple[Strike, ...]) -> list[Record]:
    records = [*job_started("repaired")]
    records += [record(2.5, "rank.found", start_time=100 + rank, **place_of(rank)) for rank in range(RANKS)]
    for number, strike in enumerate(strikes):
        at = begin_of(strikes, number)
        barrier = {"step": strike.step, "phase": "forward"}
        acts = [
            record(
                at + 0.1,
                "fault.injecting",
                fault=strike.fault,
                kind=strike.kind,
                signal=None,
                target_rank=rank,
                start_time=100 + rank,
                **place_of(rank),
            )
            for rank in strike.ranks
        ]
        evidence = [
            {
                "rank": rank,
                "pid": pid_of("train", rank),
                "signal": None,
                "raised": TEXTS[strike.kind],
                "barrier": dict(barrier),
            }
            for rank in strike.ranks
        ]
        landed: Record = {"fault": strike.fault, "kind": strike.kind, "ranks": list(strike.ranks), **barrier}
        records += [*acts, record(at + 0.13, "fault.landed", attempt="train", evidence=evidence, **landed)]
    end = 12.0 + REPAIR_S * len(strikes)
    records += [record(end, "rank.exit", signal=None, code=0, **place_of(rank)) for rank in range(RANKS)]
    records += [record(end + 0.1, "fault.healed", fault=strike.fault, how="nothing to put back") for strike in strikes]
    records += [
        record(end + 0.2, "launcher.exit", attempt="train", pid=900, role="launcher", signal=None, code=0),
        record(end + 0.3, "attempt.end", attempt="train"),
        *run_ended(end + 1),
    ]
    return records


def _log(strikes: tuple[Strike, ...]) -> Iterator[tuple[float, str]]:
    yield 2.2, "nextState: STATE_OP_NORMAL"
    for number, strike in enumerate(strikes):
        at = begin_of(strikes, number) + 0.1
        yield at + 0.15, "nextState: STATE_OP_ABNORMAL"
        yield at + 0.16, "nextState: STATE_OP_ENV_CLEAR"
        yield at + 0.17, "start notify all device stop..."
        yield at + 0.22, "start notify all device clean..."
        yield at + 0.34, "notify all device stop & clean ok!"
        yield at + 0.35, "nextState: STATE_OP_REPAIR"
        if strike.kind == "uce":
            yield at + 0.36, "Start do retry repair"
        yield at + 0.55, "start rollback"
        yield at + 0.56, "Controller:0 rollback success"
        yield at + 0.6, "nextState: STATE_OP_NORMAL"


@fresh_copies
def repaired_run(*strikes: Strike) -> GoodRun:
    """A run in which every strike is repaired."""
    run = GoodRun(plan=repaired_plan(strikes), baseline=good_run().baseline)
    run.files["harness.jsonl"] = _harness(strikes)
    for rank in range(RANKS):
        run.files[f"train-rank_{rank}-{pid_of('train', rank)}.jsonl"] = _rank(rank, strikes)
    run.log = list(_log(strikes))
    run.others["undo.jsonl"] = ledger(UNDO, UNDONE)
    return run


def uce_run() -> GoodRun:
    """Rank 1 loses its memory; rank 3 gives it its own."""
    return repaired_run(Strike("uce"))


def hcce_run() -> GoodRun:
    """The communication of rank 1 fails."""
    return repaired_run(Strike("hcce"))


def twice_run() -> GoodRun:
    """Two ranks lose their memory, one after the other."""
    return repaired_run(Strike("uce"), Strike("uce", (0,), 9))
