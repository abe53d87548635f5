"""What a job goes on from when a periodic checkpoint is damaged, and damage whose outcome nobody could know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.model import PlannedRestore
from chaos.plan.moments import PHASE_ORDER
from chaos.plan.traits import JobTraits

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

CLUSTER = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
JOB: dict[str, Any] = {"steps": 12, "protection": (), "checkpoint_interval": 4}
EVERYONE = (0, 1, 2, 3)
ANY: dict[int, tuple[int, ...]] = {0: (0, 2), 2: (0, 2), 1: (1, 3), 3: (1, 3)}
"""Whose file each rank may load where any of its replica group will do."""


@pytest.fixture
def plan(plan: Planner) -> Planner:
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", any_replica=True)
    return plan


def power(step: int = 10, ranks: tuple[int, ...] = EVERYONE) -> dict[str, Any]:
    return {"id": "power", "kind": "kill", "target": {"ranks": ranks}, "trigger": {"step": step}}


def hit(*ranks: int, kind: str = "truncate-checkpoint", name: str = "hit", **more: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, "target": {"ranks": ranks}, "trigger": {"after": "power"}, **more}


@pytest.mark.parametrize("kind", ["truncate-checkpoint", "flip-checkpoint", "stale-checkpoint"])
def test_nobody_may_go_on_from_a_damaged_file(plan: Planner, kind: str) -> None:
    made = plan(power(), hit(0, kind=kind), cluster=CLUSTER, job=JOB, expect={"resume": {"step": 9}})
    assert made.restore == PlannedRestore(8, (), {**ANY, 0: (2,), 2: (2,)}, {0: 8})
    assert "that of rank 0 and step 8; nobody may go on from a damaged state" in " ".join(made.reasons)
    assert loads(dumps(made)) == made


def test_a_job_that_loads_its_own_file_first_takes_a_replicas_for_a_damaged_one(plan: Planner) -> None:
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", group_info=True)
    made = plan(power(), hit(2), cluster=CLUSTER, job=JOB)
    assert made.restore == PlannedRestore(8, (), {0: (0,), 2: (0,), 1: (1,), 3: (3,)}, {2: 8})


def test_a_renamed_file_is_as_good_as_before(plan: Planner) -> None:
    made = plan(power(), hit(0, kind="rename-checkpoint"), cluster=CLUSTER, job=JOB)
    assert made.restore == PlannedRestore(8, (), ANY)
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", group_info=True)
    made = plan(power(), hit(0, kind="rename-checkpoint"), cluster=CLUSTER, job=JOB)
    assert made.restore == PlannedRestore(8, (), {0: (0, 2), 2: (2,), 1: (1,), 3: (3,)})


def test_a_whole_group_goes_back_to_the_older_step_or_nowhere(plan: Planner) -> None:
    made = plan(power(), hit(0, 2), cluster=CLUSTER, job=JOB)
    assert made.restore == PlannedRestore(4, (), ANY, {0: 8, 2: 8})
    assert made.resume_step == 5
    made = plan(power(), hit(0, 2), cluster=CLUSTER, job={**JOB, "checkpoint_interval": 8})
    assert made.restore == PlannedRestore(None, (), {}, {0: 8, 2: 8})
    assert not made.resumes and "that is not damaged" in " ".join(made.reasons)


@pytest.mark.parametrize(
    ("faults", "job", "said"),
    [
        ([power(ranks=(0, 1)), hit(2)], {}, "rank 2, which still lives after fault 'power'"),
        ([power(), {**hit(0), "trigger": {"step": 9}}], {}, "it must come when they save no more"),
        ([power(), hit(0), hit(0, name="again")], {}, "both hit the newest checkpoint of rank 0"),
        ([power(), hit(0)], {"checkpoint_interval": None}, "but the job saves none"),
        ([power(3), hit(0)], {}, "finds no checkpoint of rank 0"),
        ([power(7), hit(0, kind="stale-checkpoint")], {}, "finds no older checkpoint of rank 0"),
        ([power(ranks=(3,)), hit(3)], {"protection": ("TTP",)}, "but no launch starts from one"),
        ([power(), hit(0)], {"resume": False}, "but what becomes of that is not known"),
        ([power(), hit(0, parameters={"where": "data"})], {}, "a truncate-checkpoint has no parameter 'where'"),
        (
            [power(), hit(0, kind="flip-checkpoint", parameters={"where": "tail"})],
            {},
            "where of a flip-checkpoint cannot be 'tail'",
        ),
    ],
)
def test_damage_whose_outcome_nobody_could_know_is_refused(
    plan: Planner, faults: list[dict[str, Any]], job: dict[str, Any], said: str
) -> None:
    assert said in plan.refused(*faults, cluster=CLUSTER, job={**JOB, **job})


def test_a_job_that_does_not_say_how_it_resumes_is_refused(plan: Planner) -> None:
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore")
    assert "but what becomes of that is not known" in plan.refused(power(), hit(0), cluster=CLUSTER, job=JOB)
