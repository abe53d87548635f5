"""A damaged checkpoint of a script of the user's own: the scenario says from which step the script has to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.parts.resume import PlannedRestore
from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

CLUSTER = {"ranks": 2}
JOB: dict[str, Any] = {"steps": 12, "protection": (), "checkpoint_interval": 4, "script": "train.py"}
ANY: dict[int, tuple[int, ...]] = {0: (0, 1), 1: (0, 1)}
KINDS = ("truncate-checkpoint", "flip-checkpoint", "stale-checkpoint", "remove-checkpoint")


@pytest.fixture
def plan(plan: Planner) -> Planner:
    plan.traits = JobTraits(
        frozenset(PHASE_ORDER), None, resumes_periodic=True, own_script=False, mindspore=False, file_format=None
    )
    return plan


KILL = {"id": "kill", "kind": "kill", "target": {"ranks": (0, 1)}, "trigger": {"step": 10}}


def hit(*ranks: int, kind: str = "flip-checkpoint", **more: Any) -> dict[str, Any]:
    return {"id": "hit", "kind": kind, "target": {"ranks": ranks or (0,)}, "trigger": {"after": "kill"}, **more}


@pytest.mark.parametrize("kind", KINDS)
def test_the_scenario_says_from_which_step_the_script_goes_on(plan: Planner, kind: str) -> None:
    made = plan(KILL, hit(kind=kind), cluster=CLUSTER, job=JOB, expect={"resume": {"step": 5}})
    assert made.resume.restore == PlannedRestore(4, (), ANY, {0: 8}, stated=True)
    assert made.resume.resume_step == 5
    assert "that of rank 0 and step 8; no rank may resume from a damaged state" in " ".join(made.explanation.reasons)
    assert loads(dumps(made)) == made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expect", [{}, {"resume": "none"}])
def test_without_a_step_it_is_refused_with_a_hint(plan: Planner, kind: str, expect: dict[str, Any]) -> None:
    plan.lines = {"faults.1.kind": 23}
    text = plan.refused(KILL, hit(kind=kind), cluster=CLUSTER, job=JOB, expect=expect)
    assert "the plan does not know whether the script notices that" in text
    assert "write expect.resume: {step: N}" in text and "23" in text


@pytest.mark.parametrize("savers", [None, "replica groups"])
def test_no_script_goes_on_from_the_file_that_the_damaged_one_may_be_alone(plan: Planner, savers: str | None) -> None:
    """Where one rank saves for all, nobody has another file of the step."""
    text = plan.refused(KILL, hit(), cluster=CLUSTER, job={**JOB, "savers": savers}, expect={"resume": {"step": 9}})
    assert "the job resumes from the periodic checkpoints of step 4" in text and "write step 5" in text


def test_where_every_rank_saves_a_replicas_file_of_the_step_is_left(plan: Planner) -> None:
    job = {**JOB, "savers": "every rank"}
    made = plan(KILL, hit(), cluster=CLUSTER, job=job, expect={"resume": {"step": 9}})
    assert made.resume.restore == PlannedRestore(8, (), {0: (1,), 1: (1,)}, {0: 8}, stated=True)


def test_a_renamed_file_is_whole_so_the_scenario_may_say_either_step(plan: Planner) -> None:
    for step in (4, 8):
        renamed = hit(kind="rename-checkpoint")
        made = plan(KILL, renamed, cluster=CLUSTER, job=JOB, expect={"resume": {"step": step + 1}})
        assert made.resume.restore == PlannedRestore(step, (), ANY, {}, stated=True)


def test_without_damage_nothing_was_stated_about_it(plan: Planner) -> None:
    made = plan(KILL, cluster=CLUSTER, job=JOB, expect={"resume": {"step": 9}})
    assert made.resume.restore == PlannedRestore(8, (), ANY)


@pytest.mark.parametrize(
    ("faults", "job", "said"),
    [
        ([KILL, hit()], {"resume": False}, "but the outcome is not known"),
        ([{**KILL, "trigger": {"step": 7}}, hit()], {}, "what the script does without a checkpoint is not known"),
        ([KILL, hit(kind="truncate-checkpoint", parameters={"at": "record"})], {}, "files in a form of its own"),
    ],
)
def test_what_leaves_nothing_to_go_on_from_is_refused(
    plan: Planner, faults: list[dict[str, Any]], job: dict[str, Any], said: str
) -> None:
    assert said in plan.refused(*faults, cluster=CLUSTER, job={**JOB, **job}, expect={"resume": {"step": 5}})


def test_files_cannot_be_taken_away_where_nobody_says_in_which_directory_they_are(plan: Planner) -> None:
    text = plan.refused(KILL, hit(kind="lose"), cluster=CLUSTER, job=JOB, expect={"resume": {"step": 9}})
    assert "does not say where its script saves" in text
    assert "remove-checkpoint takes away the newest file" in text
