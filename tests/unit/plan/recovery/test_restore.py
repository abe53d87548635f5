"""Which periodic checkpoint a job that just ended is started again from, and whose file each rank loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.parts.resume import PlannedRestore
from chaos.plan.points import PHASE_ORDER
from chaos.plan.render import render
from chaos.plan.traits import JobTraits

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

CLUSTER = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
JOB: dict[str, Any] = {"steps": 12, "protection": (), "checkpoint_interval": 4}
EVERYONE = (0, 1, 2, 3)


@pytest.fixture
def plan(plan: Planner) -> Planner:
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints", group_info=True)
    return plan


def power(step: int = 10, phase: str = "step.begin", ranks: tuple[int, ...] = EVERYONE) -> dict[str, Any]:
    return {"id": "power", "kind": "kill", "target": {"ranks": ranks}, "trigger": {"step": step, "phase": phase}}


def lose(*ranks: int, **trigger: Any) -> dict[str, Any]:
    return {"id": "disk", "kind": "lose", "target": {"ranks": ranks}, "trigger": trigger or {"after": "power"}}


def test_a_lost_file_is_replaced_by_that_of_a_replica(plan: Planner) -> None:
    made = plan(power(), lose(2), cluster=CLUSTER, job=JOB, expect={"resume": {"step": 9}})
    assert made.response.mechanism == "none"
    assert made.resume.restore == PlannedRestore(8, (2,), {0: (0,), 2: (0,), 1: (1,), 3: (3,)})
    assert (made.resume.resumes, made.resume.resume_step, made.checkpoint, made.layout.group_info) == (
        True,
        9,
        None,
        True,
    )
    assert "rank 2 loads that of rank 0" in " ".join(made.explanation.reasons)
    assert "at step 9, from periodic checkpoints" in render(made)
    assert loads(dumps(made)) == made


def test_when_a_whole_group_has_lost_its_files_there_is_nothing_to_resume_from(plan: Planner) -> None:
    made = plan(power(), lose(0, 2), cluster=CLUSTER, job=JOB)
    assert made.resume.restore == PlannedRestore(None, (0, 2), {})
    assert not made.resume.resumes
    assert "every rank of replica group [0, 2] are lost" in " ".join(made.explanation.reasons)
    text = plan.refused(power(), lose(0, 2), cluster=CLUSTER, job=JOB, expect={"resume": {"step": 9}})
    assert "expect.resume names step 9" in text


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        (power(9, "step.begin"), 8),
        (power(8, "step.end"), 4),  # the checkpoint of a step is saved behind its end
        (power(8, "checkpoint.begin"), 4),
        (power(8, "checkpoint.end"), 8),
        (power(8, "step.end", (2, 3)), 8),  # the others finish the step and save; they hold the same slices
        (power(8, "allreduce.enter", (2, 3)), 4),
        (power(4, "step.end"), None),
    ],
)
def test_the_newest_step_that_every_group_has_saved(plan: Planner, fault: dict[str, Any], step: int | None) -> None:
    made = plan(fault, lose(3), cluster=CLUSTER, job=JOB)
    assert made.resume.restore is not None
    assert made.resume.restore.step == step
    assert made.resume.resume_step == (None if step is None else step + 1)


@pytest.mark.parametrize("expect", [{}, {"resume": {"step": 9}}])
def test_a_job_that_ends_goes_on_from_its_periodic_checkpoints(plan: Planner, expect: dict[str, Any]) -> None:
    made = plan(power(), cluster=CLUSTER, job=JOB, expect=expect)
    assert made.resume.restore == PlannedRestore(8, (), {rank: (rank,) for rank in EVERYONE})
    assert (made.resume.resumes, made.resume.resume_step) == (True, 9)


@pytest.mark.parametrize(("job", "expect"), [({"resume": False}, {}), ({}, {"resume": "none"})])
def test_a_job_that_ends_is_left_alone_where_the_scenario_says_so(
    plan: Planner, job: dict[str, Any], expect: dict[str, Any]
) -> None:
    made = plan(power(), cluster=CLUSTER, job={**JOB, **job}, expect=expect)
    assert (made.resume.restore, made.resume.resumes) == (None, False)


def test_a_job_that_ends_before_its_first_checkpoint_is_not_started_again(plan: Planner) -> None:
    made = plan(power(4), cluster=CLUSTER, job=JOB)
    assert (made.resume.restore, made.resume.resumes) == (None, False)
    assert "nothing to resume from, and the job is not started again" in " ".join(made.explanation.reasons)


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        (
            {"resume": {"step": 8}},
            "expect.resume.step says 8, but the plan shows that the job resumes",
        ),
        ({"resume": "none"}, "expect.resume says none, but the plan shows that the job resumes"),
        ({"checkpoint": {"step": 8}}, "expect.checkpoint expects an end-of-life checkpoint, but the plan shows"),
    ],
)
def test_what_the_plan_shows_to_be_wrong_is_refused(plan: Planner, expect: dict[str, Any], said: str) -> None:
    assert said in plan.refused(power(), lose(2), cluster=CLUSTER, job=JOB, expect=expect)


def test_files_are_lost_only_when_nobody_saves_any_more(plan: Planner) -> None:
    text = plan.refused(power(), lose(2, step=6), cluster=CLUSTER, job=JOB)
    assert "must come after their last save" in text
    text = plan.refused(power(), lose(2), cluster=CLUSTER, job={**JOB, "checkpoint_interval": None})
    assert "the job saves none" in text


def test_a_moment_that_is_open_leaves_the_step_open(plan: Planner) -> None:
    late = {**power(), "trigger": {"elapsed": 5.0}}
    text = plan.refused(late, lose(2), cluster=CLUSTER, job=JOB, expect={"resume": {"step": 9}})
    assert "the last periodic checkpoint is not known" in text


@pytest.mark.parametrize("job", [{"script": "own.py"}, {"resume": False}])
def test_a_job_that_does_not_resume_by_itself_has_nothing_to_restore(plan: Planner, job: dict[str, Any]) -> None:
    made = plan(power(), lose(2), cluster=CLUSTER, job={**JOB, **job})
    assert made.resume.restore is None
    assert not made.resume.resumes


def test_a_job_whose_ranks_hold_the_same_weights_writes_no_group_info(plan: Planner) -> None:
    assert not plan(job=JOB).layout.group_info
    assert plan(cluster=CLUSTER, job=JOB).layout.group_info


PAIR = {"ranks": 2}
OFTEN: dict[str, Any] = {**JOB, "checkpoint_interval": 2}


@pytest.fixture
def mindformers(plan: Planner) -> Planner:
    """A kind whose ranks go on from their own files only, as MindFormers' do."""
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindformers", storage="checkpoints", restarts=True)
    return plan


@pytest.mark.parametrize("phase", ["checkpoint.begin", "checkpoint.write", "step.end"])
def test_mindformers_goes_on_from_a_step_of_which_every_rank_has_its_own_file(mindformers: Planner, phase: str) -> None:
    made = mindformers(power(8, phase, (0,)), cluster=PAIR, job=OFTEN, expect={"resume": {"step": 7}})
    assert made.resume.restore == PlannedRestore(6, (), {0: (0,), 1: (1,)}, own=True)
    assert "every rank has its own periodic checkpoint" in " ".join(made.explanation.reasons)
    text = mindformers.refused(power(8, phase, (0,)), cluster=PAIR, job=OFTEN, expect={"resume": {"step": 9}})
    assert "resumes from the periodic checkpoints of step 6" in text


def test_mindformers_takes_no_replicas_file_for_a_lost_one(mindformers: Planner) -> None:
    made = mindformers(power(8, ranks=(0, 1)), lose(1), cluster=PAIR, job=OFTEN)
    assert made.resume.restore == PlannedRestore(None, (1,), {}, own=True)
    assert not made.resume.resumes
    assert "files of rank 1 are lost, and each rank resumes from its own files only" in " ".join(
        made.explanation.reasons
    )


def test_a_kill_between_a_file_and_the_record_of_it_leaves_mindformers_choice_open(mindformers: Planner) -> None:
    fault = power(8, "checkpoint.end", (0,))
    text = mindformers.refused(fault, cluster=PAIR, job=OFTEN, expect={"resume": {"step": 9}})
    assert "MindFormers has not recorded that" in text
    assert "step.begin of step 9" in text


def test_what_is_saved_in_the_background_leaves_mindformers_choice_open(mindformers: Planner) -> None:
    background = {**OFTEN, "storage": {"asynchronous_saving": True}}
    text = mindformers.refused(power(9, ranks=(0,)), cluster=PAIR, job=background, expect={"resume": {"step": 9}})
    assert "the checkpoint from which the job resumes is not known" in text
    assert "or set job.resume: false" in mindformers.refused(power(9, ranks=(0,)), cluster=PAIR, job=background)
    alone = mindformers(power(9, ranks=(0,)), cluster=PAIR, job={**background, "resume": False})
    assert alone.resume.restore is None


def test_files_of_one_directory_for_all_ranks_cannot_be_lost_by_rank(mindformers: Planner) -> None:
    mindformers.traits = JobTraits(
        frozenset(PHASE_ORDER), "mindformers", storage="checkpoints", restarts=True, rank_directories=False
    )
    text = mindformers.refused(power(8, ranks=(0, 1)), lose(1), cluster=PAIR, job=OFTEN)
    assert "saves the files of all ranks in one directory" in text


@pytest.mark.parametrize(("told", "holders"), [(9, (1,)), (7, (0, 1)), (3, (0, 1))])
def test_a_script_of_the_scenarios_own_goes_on_from_the_step_that_the_scenario_tells(
    plan: Planner, told: int, holders: tuple[int, ...]
) -> None:
    """Rank 0 dies before it has saved step 8: a script may wait for both files, or take rank 1's."""
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints", resumes_periodic=True)
    fault = power(8, "checkpoint.begin", (0,))
    made = plan(fault, cluster=PAIR, job=OFTEN, expect={"resume": {"step": told}})
    assert made.resume.restore == PlannedRestore(told - 1, (), {0: holders, 1: holders})


@pytest.mark.parametrize("told", [10, 11, 1])
def test_a_script_cannot_go_on_from_what_was_never_saved(plan: Planner, told: int) -> None:
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints", resumes_periodic=True)
    fault = power(8, "checkpoint.begin", (0,))
    text = plan.refused(fault, cluster=PAIR, job=OFTEN, expect={"resume": {"step": told}})
    assert "resumes from the periodic checkpoints of step 6" in text


def in_save(rank: int, handler: str = "save_ckpt") -> dict[str, Any]:
    trigger = {"handler": handler, "phase": "checkpoint.write", "after": "power"} if handler == "save_ckpt" else {}
    trigger = trigger or {"handler": handler, "after": "power"}
    return {"id": "in-save", "kind": "kill", "target": {"ranks": (rank,)}, "trigger": trigger}


SAVING = {**JOB, "protection": ("TTP",), "controller": "outside"}


@pytest.mark.parametrize(("struck", "step"), [(power(10, ranks=(2,)), 8), (power(7, ranks=(2,)), 4)])
def test_behind_a_save_that_was_broken_off_the_periodic_ones_are_left(
    plan: Planner, struck: dict[str, Any], step: int
) -> None:
    """Whom the fault takes inside the save has saved what was due before."""
    expect = {"checkpoint": "none", "resume": {"step": step + 1}}
    made = plan(struck, in_save(0), cluster=CLUSTER, job=SAVING, expect=expect)
    assert (made.response.mechanism, made.checkpoint, made.resume.resume_step) == ("none", None, step + 1)
    assert made.resume.restore is not None and made.resume.restore.step == step
    assert [(recovery.mechanism, recovery.succeeds) for recovery in made.response.recoveries] == [("TTP", False)]


def test_a_save_that_may_begin_before_the_periodic_one_has_ended_is_refused(plan: Planner) -> None:
    expect = {"checkpoint": "none", "resume": {"step": 9}}
    struck = power(8, "step.end", ranks=(2,))
    text = plan.refused(struck, in_save(0), cluster=CLUSTER, job=SAVING, expect=expect)
    assert "whether its ranks have finished the periodic checkpoint of step 8 by then depends on timing" in text
