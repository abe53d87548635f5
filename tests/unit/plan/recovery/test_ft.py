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
    )


@pytest.fixture
def plan() -> Planner:
    """A planner of jobs of three replica groups."""
    return Planner(traits=traits("FT"), effects={"kill": DEATH, "suspend": SUSPENSION})


def kill(step: int, phase: str = "step.end", rank: int = 1, kind: str = "kill", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}, **more}


THREE = {"ranks": 3}


@pytest.mark.parametrize(("step", "phase", "together"), [(6, "step.end", 6), (7, "forward", 6), (6, "step.begin", 5)])
def test_the_others_go_on_and_the_lost_group_is_healed(plan: Planner, step: int, phase: str, together: int) -> None:
    found = plan(kill(step, phase, id="death"), job=JOB, cluster=THREE)
    assert found.response.recoveries == (Recovery("FT", ("death",), together, restarted=(1,), copied=(1,)),)
    assert found.response.mechanism == "FT"
    assert not found.resume.resumes


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
