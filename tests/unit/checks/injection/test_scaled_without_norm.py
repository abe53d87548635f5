"""Where no agent sees the reduced gradients, a spike is proven by its record and by a state that differs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.evidence.proof import Case
from chaos.faults.values.proof_spike import SPIKE
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import ABNORMAL, DEATH
from chaos.plan.parts.fault import PlannedFault

FAULT = PlannedFault("it", "spike", (2,), {"step": 5, "phase": "allreduce.enter"}, {"factor": 1000}, None, 9, ABNORMAL)


def event(name: str, mono: int, **data: Any) -> Event:
    return Event(name, mono, mono, "agent", mono, "train", 2, 77, data, f"rank_2.jsonl:{mono}")


def digest(step: int, mono: int, state: str) -> Event:
    return event("digest", mono, step=step, parameters={"layer1.weight": state}, gradients=None)


INJECTING = event("fault.injecting", 10, fault="it")
LANDING = event("fault.landed", 12, fault="it")
SCALED = event("fault.scaled", 11, fault="it", step=5, phase="allreduce.enter", factor=1000.0, norm=None)
BEFORE, AFTER = digest(4, 9, "s4"), digest(5, 20, "other")
BASELINE = (digest(4, 4, "s4"), digest(5, 5, "s5"))


def doubts(
    *events: Event, baseline: tuple[Event, ...] = BASELINE, faults: tuple[PlannedFault, ...] = (FAULT,)
) -> list[str]:
    plan = SimpleNamespace(
        training=SimpleNamespace(gradients=False),
        fault_tolerance=SimpleNamespace(watch=None),
        response=SimpleNamespace(recoveries=()),
        faults=faults,
    )
    artifacts = SimpleNamespace(baseline=History(baseline, ()))
    evidence = {"rank": 2, "pid": 77, "factor": 1000.0, "norm": None}
    case = Case(cast(Any, plan), History(events, ()), cast(Any, artifacts), FAULT, LANDING, INJECTING, evidence)
    return [text for text, _ in SPIKE.doubts(case)]


def test_the_record_and_another_state_prove_it() -> None:
    assert doubts(BEFORE, SCALED, AFTER) == []


@pytest.mark.parametrize(
    ("events", "doubt"),
    [
        ((BEFORE, AFTER), "has no gradients that it scaled"),
        ((BEFORE, SCALED, digest(5, 20, "s5")), "the fault changed nothing that counts"),
        ((BEFORE, SCALED), "there is nothing to compare rank 2's step 5 with"),
        ((digest(4, 9, "wrong"), SCALED, AFTER), "was already another than the fault-free run's after step 4"),
        ((BEFORE, replace(SCALED, data={**SCALED.data, "factor": 1}), AFTER), "that changes nothing"),
        ((BEFORE, replace(SCALED, data={**SCALED.data, "step": 6}), AFTER), "the planned fault was not injected"),
        ((BEFORE, replace(SCALED, data={**SCALED.data, "factor": 10.0}), AFTER), "factor"),
        ((BEFORE, replace(SCALED, mono=9), AFTER), "before it was told to"),
    ],
)
def test_without_its_evidence_it_is_doubted(events: tuple[Event, ...], doubt: str) -> None:
    assert any(doubt in text for text in doubts(*events)), doubts(*events)


def test_without_a_fault_free_run_its_effect_is_unknown() -> None:
    assert any("there is nothing to compare" in text for text in doubts(BEFORE, SCALED, AFTER, baseline=()))


FAILED = event("rank.exit", 30, code=1, signal=None)


def test_a_rank_that_fails_in_the_step_leaves_no_state_and_the_job_is_to_blame() -> None:
    assert doubts(BEFORE, SCALED, FAILED) == []
    killed = event("rank.exit", 30, code=None, signal=15)
    assert doubts(BEFORE, SCALED, killed) == []


@pytest.mark.parametrize(
    "events",
    [
        (BEFORE, SCALED, event("rank.exit", 30, code=0, signal=None)),
        (BEFORE, SCALED, replace(FAILED, pid=78)),
        (BEFORE, SCALED, event("step.end", 20, step=5), FAILED),
    ],
)
def test_a_state_that_is_only_not_recorded_is_still_needed(events: tuple[Event, ...]) -> None:
    assert any("there is nothing to compare" in text for text in doubts(*events))


def test_a_rank_that_another_fault_ends_has_to_show_the_effect_first() -> None:
    kill = PlannedFault("kill", "kill", (2,), {"step": 6, "phase": "forward"}, {}, None, 9, DEATH)
    assert any("there is nothing to compare" in text for text in doubts(BEFORE, SCALED, FAILED, faults=(FAULT, kill)))
