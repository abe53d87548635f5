"""An end is planned by the plan and by what has been done until then, as the check judges it afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.live.ends import JudgedEnds
from chaos.live.state import Ends
from chaos.plan.job_effect import DEATH
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Budget, Recovery, Response
from tests.kit.plans import plan_with

KILL = PlannedFault("kill", "kill", (1,), {"step": 5}, {}, None, 1, effect=DEATH)
SAVED = plan_with(faults=(KILL,), mechanism="TTP", recoveries=(Recovery("TTP", ("kill",), 5),))


def event(_event: str, mono: int, rank: int, pid: int, **data: Any) -> Event:
    return Event(_event, mono, mono, "harness", 0, attempt="train", rank=rank, pid=pid, data=data)


def judged(plan: Plan, *events: Event, running: str = "train") -> Ends:
    ends = JudgedEnds(plan)
    ends.look(History(events), running)
    return ends.counts


ACT = event("fault.injecting", 10, 1, 101, fault="kill", kind="kill")


@pytest.mark.parametrize(("when", "ends"), [(5, Ends(0, 1)), (15, Ends(1, 0))])
def test_an_end_that_a_fault_has_to_bring_about_is_unplanned_before_the_fault(when: int, ends: Ends) -> None:
    assert judged(SAVED, ACT, event("rank.exit", when, 0, 100, signal=None, code=1)) == ends


def test_a_replaced_process_is_planned_to_end_and_the_last_one_of_a_launch_is_not() -> None:
    replaced = Recovery("ARF", ("kill",), 5, restarted=(1,))
    plan = replace(SAVED, response=Response("ARF", Budget(None, {}), "fast", (replaced,)))
    killed = event("rank.exit", 15, 1, 101, signal=9, code=None)
    assert judged(plan, ACT, killed) == Ends(1, 0)
    assert judged(plan, ACT, killed, running="") == Ends(0, 1)
    well = event("rank.exit", 20, 1, 102, signal=None, code=0)
    assert judged(plan, ACT, killed, well, running="") == Ends(2, 0)
