"""FT: the other replica groups train on, the lost group is healed; what cannot be judged is refused."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.scope import not_checked
from chaos.plan.job_effect import DEATH, SUSPENSION
from chaos.plan.parts.response import PHASES, Recovery
from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits
from tests.unit.plan.conftest import Planner

JOB: dict[str, Any] = {
    "steps": 12,
    "protection": ("FT",),
    "script": "train.py",
    "torchft": {"min_groups": 2, "timeout": "10s"},
}


LIGHTHOUSE = "lighthouse"


def traits(*mechanisms: str) -> JobTraits:
    return JobTraits(
        frozenset(PHASE_ORDER),
        None,
        genuine=True,
        own_script=False,
        mindspore=False,
        vendor=None,
        launcher_restarts=True,
        mechanisms=frozenset(mechanisms) or None,
        coordinators=frozenset({LIGHTHOUSE}) if mechanisms else frozenset(),
    )


@pytest.fixture
def plan() -> Planner:
    """A planner of jobs of three replica groups."""
    return Planner(traits=traits("FT"), effects={"kill": DEATH, "suspend": SUSPENSION})


def kill(step: int, phase: str = "step.end", rank: int = 1, kind: str = "kill", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}, **more}


THREE = {"ranks": 3}


def suspend(step: int, phase: str = "forward", seconds: float = 20, **more: Any) -> dict[str, Any]:
    return kill(step, phase, kind="suspend", parameters={"seconds": seconds}, **more)


def lighthouse(kind: str = "kill", **trigger: Any) -> dict[str, Any]:
    return {"kind": kind, "target": {"role": LIGHTHOUSE}, "trigger": trigger or {"elapsed": "1s"}}


@pytest.mark.parametrize(("step", "phase", "together"), [(6, "step.end", 6), (7, "forward", 6), (6, "step.begin", 5)])
def test_the_others_go_on_and_the_lost_group_is_healed(plan: Planner, step: int, phase: str, together: int) -> None:
    found = plan(kill(step, phase, id="death"), job=JOB, cluster=THREE)
    assert found.response.recoveries == (Recovery("FT", ("death",), together, restarted=(1,), copied=(1,)),)
    assert found.response.mechanism == "FT"
    assert not found.resume.resumes


def test_a_stopped_group_keeps_its_process_and_gets_the_state_of_another(plan: Planner) -> None:
    found = plan(suspend(7, id="stop"), job=JOB, cluster=THREE)
    assert found.response.recoveries == (Recovery("FT", ("stop",), 6, restarted=(), copied=(1,)),)
    comparable = found.equivalence.comparable
    assert comparable is not None
    assert "the others train on without rank 1" in comparable.why


def test_of_a_stopped_and_a_killed_group_the_killed_one_alone_is_started_again(plan: Planner) -> None:
    faults = [suspend(6, "step.end", id="stop"), kill(6, id="death", rank=2)]
    found = plan(*faults, job={**JOB, "torchft": {"min_groups": 1, "timeout": "10s"}}, cluster=THREE)
    (recovery,) = found.response.recoveries
    assert (recovery.restarted, recovery.copied) == ((2,), (1, 2))


def test_a_stopped_group_is_missed_after_timeout_and_heartbeats(plan: Planner) -> None:
    dead, stopped = (
        plan(fault, job=JOB, cluster=THREE).response.budget.phases for fault in (kill(6), suspend(6, seconds=20))
    )
    assert stopped["stand-still"] - dead["stand-still"] == 10
    assert stopped["relaunch"] - dead["relaunch"] == 20


def test_without_the_lighthouse_the_job_ends(plan: Planner) -> None:
    found = plan(lighthouse(), job=JOB, cluster=THREE)
    assert (found.response.mechanism, found.response.recoveries) == ("none", ())
    assert not found.resume.resumes
    assert found.response.budget.total == 50
    (fault,) = found.faults
    assert (fault.ranks, fault.role, fault.effect.strands) == ((), LIGHTHOUSE, True)


@pytest.mark.parametrize(
    ("faults", "job", "message"),
    [
        ([lighthouse("suspend")], {}, "the lighthouse can be hit by the fault kind kill only"),
        ([lighthouse(step=4)], {}, "hits no rank, so no rank is held"),
        ([lighthouse(), kill(4)], {}, "calls for a recovery beside fault"),
        ([lighthouse()], {"protection": ()}, "without FT in job.protection nothing is promised"),
        ([lighthouse()], {"torchft": {"timeout": "200s"}}, "may live on for 430 s without the lighthouse"),
    ],
)
def test_an_end_of_the_lighthouse_that_cannot_be_judged_is_refused(
    plan: Planner, faults: list[dict[str, Any]], job: dict[str, Any], message: str
) -> None:
    assert message in str(plan.refused(*faults, job={**JOB, **job}, cluster=THREE))


def test_other_kinds_of_jobs_have_no_lighthouse() -> None:
    planner = Planner(effects={"kill": DEATH})
    assert "has no lighthouse" in str(planner.refused(lighthouse()))


def test_a_rank_is_continued_only_where_lost_ranks_come_back() -> None:
    planner = Planner(effects={"suspend": SUSPENSION})
    assert "continues ranks that count as lost" in str(planner.refused(suspend(7)))


def test_nothing_after_the_last_common_step_is_compared_and_the_result_says_so(plan: Planner) -> None:
    found = plan(kill(6), job=JOB, cluster=THREE)
    comparable = found.equivalence.comparable
    assert comparable is not None
    assert (comparable.until, comparable.losses_until) == (6, 6)
    left = {(exclusion.check, exclusion.what) for exclusion in not_checked(found)}
    assert ("loss", "losses after step 6 against the fault-free run") in left
    assert any(check == "resume" for check, _ in left)


def test_the_stand_still_has_a_budget_with_the_time_until_a_group_is_missed(plan: Planner) -> None:
    assert PHASES["FT"] == ("stand-still", "relaunch", "import", "heal", "first step")
    short, long = (
        plan(kill(6), job={**JOB, "torchft": {"heartbeat_timeout": f"{seconds}s"}}, cluster=THREE).response.budget
        for seconds in (5, 8)
    )
    assert long.phases["stand-still"] - short.phases["stand-still"] == 3


@pytest.mark.parametrize(
    ("faults", "job", "message"),
    [
        ([kill(1, "forward")], {}, "would be step 0 of 12"),
        ([kill(12)], {}, "would be step 12 of 12"),
        ([{"kind": "kill", "target": {"rank": 1}, "trigger": {"elapsed": "1s"}}], {}, "leaves the step open"),
        ([kill(4, id="a"), kill(9, id="b", rank=2)], {}, "a second loss is not yet planned"),
        ([kill(4)], {"torchft": {"min_groups": 3}}, "fewer groups than job.torchft.min_groups"),
        ([kill(4, kind="suspend")], {}, "falls silent and lives on"),
        ([suspend(4, seconds=14)], {}, "not known whether it counts as lost before that"),
        ([kill(4)], {"restart_limit": 0}, "would not be started again"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    plan: Planner, faults: list[dict[str, Any]], job: dict[str, Any], message: str
) -> None:
    assert message in str(plan.refused(*faults, job={**JOB, **job}, cluster=THREE))


def test_jobs_without_torchft_cannot_have_it() -> None:
    planner = Planner(traits=traits(), effects={"kill": DEATH})
    assert "has not" in str(planner.refused(kill(4), job=JOB, cluster=THREE))
