"""Memory errors with and without loss, and the level of a communication error: what the rules make of the evidence."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.evidence.collect import Collector
from chaos.evidence.injection.triggers import demands
from chaos.evidence.recovery_windows import Window
from chaos.faults.device_errors.proof import raised_doubts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.case import Case
from chaos.mechanisms.online import rule as online
from chaos.plan.job_effect import COMMUNICATION, LOW_LEVEL, MEMORY, JobEffect
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed
from tests.kit.runs.good_run import GROUPS, a_plan

LOW, HIGH = LOW_LEVEL, MEMORY
UCE = "UCEError error occurs when execute, error_code=507053."
HCCE = "HCCEError error occurs when execute, error_code=507904."


def event(what: str, mono: int, rank: int, **data: Any) -> Event:
    return Event(what, mono, mono, "agent", mono, "train", rank, 100 + rank, data, f"history/rank_{rank}:{mono}")


def case(fault: PlannedFault, mechanism: str, copied: tuple[int, ...], *events: Event) -> Case:
    recovery = Recovery(mechanism, (fault.id,), 5, copied=copied)
    window = Window(1, (), recovery, (fault,), 0, None)
    plan = changed(a_plan(), faults=(fault,), recoveries=(recovery,), mechanism=mechanism)
    return Case(plan, window, recovery, History(events), None, Collector("mechanism"))  # type: ignore[arg-type]


def fault(effect: JobEffect, kind: str = "uce") -> PlannedFault:
    return PlannedFault("fault", kind, (1,), {"step": 6, "phase": "forward"}, {}, None, 1, effect)


def copies(effect: JobEffect, copied: tuple[int, ...], *called: int) -> list[str]:
    """What is said about ``repair`` having been called on these ranks."""
    one = case(fault(effect), "UCE", copied, *(event("handler.enter", 10, r, name="repair", step=5) for r in called))
    online._judge_copies(one, one.calls("repair"))
    return [finding.seen for finding in one.collector.findings()]


def test_without_loss_repair_may_be_called_on_that_rank_and_on_no_other() -> None:
    replica = next(rank for group in GROUPS if 1 in group for rank in group if rank != 1)
    assert copies(LOW, ()) == []
    assert copies(LOW, (), 1) == []
    assert "repair was called on healthy" in copies(LOW, (), 1, replica)[0]


def test_with_loss_a_replica_has_to_give_its_parameters() -> None:
    replica = next(rank for group in GROUPS if 1 in group for rank in group if rank != 1)
    assert copies(HIGH, (1,), 1, replica) == []
    assert "no healthy rank of replica group" in copies(HIGH, (1,), 1)[0]
    assert "rank 1 lost its memory, and repair was not called on it" in copies(HIGH, (1,))[0]


@pytest.mark.parametrize(("text", "verdicts"), [(HCCE, []), ("HCCEError error occurs when execute", ["unknown"])])
def test_a_communication_error_is_the_steps_only_with_its_error_number(text: str, verdicts: list[str]) -> None:
    raised = event("fault.raised", 5, 1, fault="fault", text=text)
    one = case(fault(COMMUNICATION, "hcce"), "HCCE", (), raised)
    online._judge_level(one)
    assert [finding.verdict for finding in one.collector.findings()] == verdicts
    assert "at step level: HCCL has given up its operator, error 507904" in online._expected(one)


def doubts(effect: JobEffect, lost: int | None) -> list[str]:
    where = {"step": 6, "phase": "forward"}
    data = {"fault": "fault", "text": UCE, **where, **({} if lost is None else {"parameters": lost})}
    planned_fault = fault(effect)
    injection = event("fault.injecting", 1, 1, fault="fault")
    history = History((injection, event("fault.raised", 2, 1, **data), event("step.begin", 3, 1, step=6)))
    landing = event("fault.landed", 4, 1, fault="fault")
    evidence: dict[str, object] = {"rank": 1, "pid": 101, "signal": None, "raised": UCE}
    return [
        text
        for text, _ in raised_doubts(
            history, planned_fault, demands(planned_fault.trigger), landing, evidence, injection
        )
    ]


def test_an_error_that_took_nothing_proves_no_repair() -> None:
    assert doubts(HIGH, 20) == doubts(HIGH, None) == doubts(LOW, 0) == []
    assert doubts(HIGH, 0) == ["rank 1 has not lost any parameter, so a repair would prove nothing"]
    assert doubts(LOW, 20) == ["rank 1 has lost 20 parameters, and none should be"]
