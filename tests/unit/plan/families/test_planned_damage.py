"""What a job goes on from when a periodic checkpoint is damaged, and damage whose outcome nobody could know."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.parts.resume import PlannedRestore
from chaos.plan.platform_traits import PlatformTraits
from chaos.plan.points import PHASE_ORDER
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
    assert made.resume.restore == PlannedRestore(8, (), {**ANY, 0: (2,), 2: (2,)}, {0: 8})
    assert "that of rank 0 and step 8; no rank may resume from a damaged state" in " ".join(made.explanation.reasons)
    assert loads(dumps(made)) == made


def test_a_job_that_loads_its_own_file_first_takes_a_replicas_for_a_damaged_one(plan: Planner) -> None:
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", group_info=True)
    made = plan(power(), hit(2), cluster=CLUSTER, job=JOB)
    assert made.resume.restore == PlannedRestore(8, (), {0: (0,), 2: (0,), 1: (1,), 3: (3,)}, {2: 8})


def test_a_renamed_file_is_as_good_as_before(plan: Planner) -> None:
    made = plan(power(), hit(0, kind="rename-checkpoint"), cluster=CLUSTER, job=JOB)
    assert made.resume.restore == PlannedRestore(8, (), ANY)
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", group_info=True)
    made = plan(power(), hit(0, kind="rename-checkpoint"), cluster=CLUSTER, job=JOB)
    assert made.resume.restore == PlannedRestore(8, (), {0: (0, 2), 2: (2,), 1: (1,), 3: (3,)})


def test_a_whole_group_goes_back_to_the_older_step_or_nowhere(plan: Planner) -> None:
    made = plan(power(), hit(0, 2), cluster=CLUSTER, job=JOB)
    assert made.resume.restore == PlannedRestore(4, (), ANY, {0: 8, 2: 8})
    assert made.resume.resume_step == 5
    made = plan(power(), hit(0, 2), cluster=CLUSTER, job={**JOB, "checkpoint_interval": 8})
    assert made.resume.restore == PlannedRestore(None, (), {}, {0: 8, 2: 8})
    assert not made.resume.resumes and "has an undamaged" in " ".join(made.explanation.reasons)


@pytest.mark.parametrize(
    ("faults", "job", "said"),
    [
        ([power(ranks=(0, 1)), hit(2)], {}, "rank 2, which still lives after fault 'power'"),
        ([power(), {**hit(0), "trigger": {"step": 9}}], {}, "it must come after their last save"),
        ([power(), hit(0), hit(0, name="again")], {}, "both hit the newest checkpoint of rank 0"),
        ([power(), hit(0)], {"checkpoint_interval": None}, "but the job saves none"),
        ([power(3), hit(0)], {}, "finds no checkpoint of rank 0"),
        ([power(7), hit(0, kind="stale-checkpoint")], {}, "finds no older checkpoint of rank 0"),
        ([power(ranks=(3,)), hit(3)], {"protection": ("TTP",)}, "but no launch starts from one"),
        ([power(), hit(0)], {"resume": False}, "but the outcome is not known"),
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
    assert "but the outcome is not known" in plan.refused(power(), hit(0), cluster=CLUSTER, job=JOB)


def mindformers(plan: Planner, *, legacy: bool = True, form: str | None = "safetensors") -> Planner:
    """A job of MindFormers: each rank goes on from its own file, of the step that the records name."""
    plan.traits = JobTraits(
        frozenset(PHASE_ORDER), "mindformers", restarts=True, file_format=form, rank_directories=legacy
    )
    return plan


TWO = {"ranks": 2}
BOTH = (0, 1)
OWN: dict[int, tuple[int, ...]] = {0: (0,), 1: (1,)}


@pytest.mark.parametrize(
    "kind", ["truncate-checkpoint", "flip-checkpoint", "stale-checkpoint", "remove-checkpoint", "rename-checkpoint"]
)
def test_every_rank_of_mindformers_goes_back_to_the_newest_step_of_which_all_have_a_whole_file(
    plan: Planner, kind: str
) -> None:
    made = mindformers(plan)(power(ranks=BOTH), hit(1, kind=kind), cluster=TWO, job=JOB)
    assert made.resume.restore == PlannedRestore(4, (), OWN, {1: 8}, own=True)
    assert loads(dumps(made)) == made


def test_a_whole_file_of_a_replica_is_no_help_where_each_rank_goes_on_from_its_own(plan: Planner) -> None:
    """Both ranks hold the same weights, and nobody looks for those of the other."""
    job = {**JOB, "checkpoint_interval": 8}
    made = mindformers(plan)(power(ranks=BOTH), hit(0, kind="truncate-checkpoint"), cluster=TWO, job=job)
    assert made.resume.restore == PlannedRestore(None, (), {}, {0: 8}, own=True)
    message = " ".join(made.explanation.reasons)
    assert "step has an undamaged periodic checkpoint of every rank" in message
    assert "from its own files only" in message and "replica group has a" not in message


def test_what_a_file_of_mindformers_has_not_is_refused(plan: Planner) -> None:
    record = hit(0, parameters={"at": "record"})
    assert "this job saves .safetensors" in mindformers(plan).refused(power(ranks=BOTH), record, cluster=TWO, job=JOB)
    mindformers(plan, form="ckpt")(power(ranks=BOTH), record, cluster=TWO, job=JOB)
    renamed = hit(0, kind="rename-checkpoint")
    message = mindformers(plan, legacy=False, form=None).refused(power(ranks=BOTH), renamed, cluster=TWO, job=JOB)
    assert "the step is in the name of the directory that all ranks save in" in message


def record(*ranks: int, how: str = "remove", name: str = "record") -> dict[str, Any]:
    return hit(*ranks, kind="damage-record", name=name, parameters={"how": how})


@pytest.mark.parametrize("how", ["remove", "truncate", "corrupt"])
@pytest.mark.parametrize("ranks", [(0,), (0, 1)])
def test_without_the_record_of_a_rank_the_newest_files_count(plan: Planner, how: str, ranks: tuple[int, ...]) -> None:
    made = mindformers(plan)(power(ranks=BOTH), record(*ranks, how=how), cluster=TWO, job=JOB)
    assert made.resume.restore == PlannedRestore(8, (), OWN, own=True)
    said = "latest time" if len(ranks) == 2 else "without the records of rank 0 those of the others count"
    assert said in " ".join(made.explanation.reasons)


@pytest.mark.parametrize("legacy", [True, False])
def test_an_older_record_is_believed(plan: Planner, legacy: bool) -> None:
    made = mindformers(plan, legacy=legacy)(power(ranks=BOTH), record(0, how="stale"), cluster=TWO, job=JOB)
    assert made.resume.restore == PlannedRestore(4, (), OWN, own=True)
    assert "the record of rank 0 names step 4" in " ".join(made.explanation.reasons)


def test_a_plan_that_was_written_before_it_told_of_own_files_is_read(plan: Planner) -> None:
    made = plan(power(), hit(0, 2), cluster=CLUSTER, job=JOB)
    assert '"own": false' in dumps(made)
    assert loads(dumps(made).replace(', "own": false', "")) == made


@pytest.mark.parametrize("how", ["remove", "truncate", "corrupt"])
def test_without_the_one_record_of_the_new_layout_the_last_complete_save_counts(plan: Planner, how: str) -> None:
    made = mindformers(plan, legacy=False)(power(ranks=BOTH), record(0, how=how), cluster=TWO, job=JOB)
    assert made.resume.restore == PlannedRestore(8, (), OWN, own=True)
    assert "the last complete checkpoint in the directory" in " ".join(made.explanation.reasons)


def test_before_version_1_8_one_lost_record_makes_all_ranks_go_by_the_latest_times(plan: Planner) -> None:
    """Beside a record that is stale: there the two promises differ."""
    faults = (power(ranks=BOTH), record(0, name="gone"), record(1, how="stale"))
    made = mindformers(plan)(*faults, cluster=TWO, job=JOB)
    assert made.resume.restore == PlannedRestore(4, (), OWN, own=True)
    plan.traits = replace(plan.traits, all_records=True)
    made = plan(*faults, cluster=TWO, job=JOB)
    assert made.resume.restore == PlannedRestore(8, (), OWN, own=True)
    assert "rank 0 has no record (meta.json), so each takes its file with the latest time" in " ".join(
        made.explanation.reasons
    )


def test_ranks_that_do_not_see_each_others_records_are_refused(plan: Planner) -> None:
    hosts = {**TWO, "nodes": 2, "platform": "ssh"}
    plan.platform = PlatformTraits(own_files=True)
    message = mindformers(plan).refused(power(ranks=BOTH), cluster=hosts, job=JOB)
    assert "on the platform ssh each host has a copy: the ranks of other hosts do not see" in message
    mindformers(plan, legacy=False)(power(ranks=BOTH), cluster=hosts, job=JOB)
    plan.platform = PlatformTraits()
    mindformers(plan)(power(ranks=BOTH), cluster=hosts, job=JOB)
    own = {**JOB, "environment": {"SHARED_PATHS": "/mnt"}}
    assert "replaces the run's own value" in mindformers(plan).refused(power(), cluster={"ranks": 4}, job=own)


@pytest.mark.parametrize("part", ["optimizer", "common.json", "metadata.json"])
def test_a_save_of_which_a_part_is_damaged_is_not_complete(plan: Planner, part: str) -> None:
    damage = hit(0, kind="remove-checkpoint", parameters={"part": part})
    made = mindformers(plan, legacy=False, form=None)(power(ranks=BOTH), damage, cluster=TWO, job=JOB)
    assert made.resume.restore == PlannedRestore(4, (), OWN, {0: 8}, own=True)


@pytest.mark.parametrize(
    ("damage", "legacy", "ranks", "said"),
    [
        (hit(0, parameters={"part": "optimizer"}), True, 2, "in this job's layout a rank's checkpoint is one file"),
        (hit(1, parameters={"part": "common.json"}), False, 2, "which rank 0 writes for all"),
        (hit(0, parameters={"part": "metadata.json"}), False, 1, "in jobs of several ranks only"),
        (hit(0, kind="flip-checkpoint", parameters={"part": "common.json"}), False, 2, "and common.json holds none"),
        (hit(0, parameters={"part": ".metadata"}), False, 2, "only PyTorch's distributed checkpoints have"),
        (hit(0, parameters={"part": "index"}), False, 2, "part of a truncate-checkpoint cannot be 'index'"),
        (hit(0, kind="rename-checkpoint", parameters={"part": "model"}), True, 2, "has no parameter 'part'"),
    ],
)
def test_a_part_that_is_not_there_is_refused(
    plan: Planner, damage: dict[str, Any], legacy: bool, ranks: int, said: str
) -> None:
    faults = (power(ranks=tuple(range(ranks))), damage)
    assert said in mindformers(plan, legacy=legacy, form=None).refused(*faults, cluster={"ranks": ranks}, job=JOB)


def test_the_metadata_of_a_directory_is_damage_to_the_checkpoint_of_all(plan: Planner) -> None:
    plan.traits = JobTraits(
        frozenset(PHASE_ORDER), None, resumes_periodic=True, own_script=False, file_format=None, shards_state=True
    )
    job = {**JOB, "script": "train.py"}
    lost = hit(0, kind="remove-checkpoint", parameters={"part": ".metadata"})
    stated = {"resume": {"step": 5}}
    restore = plan(power(), lost, cluster=CLUSTER, job=job, expect=stated).resume.restore
    assert restore is not None and (restore.step, restore.damaged) == (4, {0: 8})
    other = hit(1, kind="remove-checkpoint", parameters={"part": ".metadata"})
    assert "which rank 0 writes for all" in plan.refused(power(), other, cluster=CLUSTER, job=job, expect=stated)
    flip = hit(0, kind="flip-checkpoint", parameters={"part": ".metadata"})
    assert ".metadata holds none" in plan.refused(power(), flip, cluster=CLUSTER, job=job, expect=stated)
    cut = hit(0, parameters={"part": "optimizer"})
    assert "a rank's checkpoint is one file" in plan.refused(power(), cut, cluster=CLUSTER, job=job, expect=stated)


@pytest.mark.parametrize(
    ("faults", "legacy", "said"),
    [
        ([power(ranks=BOTH), record(1)], False, "which rank 0 writes for all"),
        ([power(ranks=BOTH), record(0), hit(1)], True, "a matter of chance"),
        ([power(ranks=BOTH), {**record(0), "trigger": {"step": 9}}], True, "it must come after their last save"),
        ([power(7, BOTH), record(0, how="stale")], True, "finds no record of an older checkpoint of rank 0"),
        ([power(3, BOTH), record(0)], True, "finds no record of a checkpoint of rank 0"),
        ([power(ranks=BOTH), record(0, how="burn")], True, "how of a damage-record cannot be 'burn'"),
    ],
)
def test_a_record_whose_loss_nobody_could_judge_is_refused(
    plan: Planner, faults: list[dict[str, Any]], legacy: bool, said: str
) -> None:
    assert said in mindformers(plan, legacy=legacy).refused(*faults, cluster=TWO, job=JOB)


def test_ranks_whose_latest_times_are_of_different_steps_are_refused(plan: Planner) -> None:
    """Rank 1 is killed while it saves step 8, rank 0 behind it: without records each would take another step."""
    one = {"id": "one", "kind": "kill", "target": {"ranks": (1,)}, "trigger": {"step": 8, "phase": "checkpoint.begin"}}
    other = {"id": "power", "kind": "kill", "target": {"ranks": (0,)}, "trigger": {"step": 9}}
    lost = {**record(1, name="b"), "trigger": {"after": "one"}}
    message = mindformers(plan).refused(other, one, record(0), lost, cluster=TWO, job=JOB)
    assert "the newest files of the ranks are of different steps" in message


def test_only_mindformers_keeps_a_record(plan: Planner) -> None:
    assert "only jobs of MindFormers keep one" in plan.refused(power(), record(0), cluster=CLUSTER, job=JOB)


def test_a_mindformers_job_that_has_no_file_left_begins_anew_and_is_refused(plan: Planner) -> None:
    lost = {"id": "disk", "kind": "lose", "target": {"ranks": BOTH}, "trigger": {"after": "power"}}
    message = mindformers(plan).refused(power(ranks=BOTH), lost, cluster=TWO, job=JOB)
    assert "silently trains from the beginning" in message
