"""The job kind ``mindspore``: a script of the user's, with nothing put in place of anything."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.jobs.kind import JobError, Launch
from chaos.jobs.mindspore import KIND
from chaos.plan.build import build_plan
from chaos.plan.job_effect import DEATH, LOST_FILES, NONE
from chaos.plan.model import Plan
from chaos.plan.planned_kind import PlannedKind
from chaos.plan.source import Source
from chaos.platforms.kind import platform_kind
from chaos.scenario.errors import ScenarioError
from chaos.scenario.models.scenario import Scenario

KILL = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 7}}


def scenario(job: dict[str, Any] | None = None, **more: Any) -> Scenario:
    basis = {"kind": "mindspore", "script": "train.py", "arguments": ["--device=CPU"], "steps": 12}
    cluster = more.pop("cluster", {"ranks": 2})
    return Scenario.model_validate(
        {"chaos": 1, "name": "x", "cluster": cluster, "job": {**basis, **(job or {})}, **more}
    )


class NoLines:
    """Positions of a scenario that was not read from a file."""

    def nearest(self, path: str) -> None:
        del path


def planned(one: Scenario) -> Plan:
    kinds = {"kill": PlannedKind(DEATH), "lose-checkpoint": PlannedKind(LOST_FILES), "straggler": PlannedKind(NONE)}
    platform = platform_kind(one.cluster.platform).traits
    return build_plan(
        one, Source("x", NoLines()), traits=KIND.traits, kinds=kinds, draw_seed=lambda: 0, platform=platform
    )


def refusals(one: Scenario) -> str:
    with pytest.raises(ScenarioError) as refused:
        planned(one)
    return str(refused.value)


@pytest.fixture
def launch(tmp_path: Path) -> Any:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "msrun").write_text("")
    python = tmp_path / Path(sys.executable).name

    def make(one: Scenario, *, resume: bool = False) -> Launch:
        return Launch(one, tmp_path, tmp_path, tmp_path / "logs", resume, (1, 2), python, "standin")

    return make


def test_nothing_is_simulated_and_no_stand_in_is_on_the_path(launch: Any) -> None:
    assert registry("jobs").load("mindspore") is KIND
    assert KIND.simulated(scenario(), "standin") == ()
    command = KIND.command(launch(scenario({"protection": ["TTP"], "device": "Ascend"})))
    assert command.path == ()
    assert KIND.extensions == ()
    assert command.environment["MS_ENABLE_TFT"] == "{TTP:1}"
    assert "MS_ENABLE_TFT" not in KIND.command(launch(scenario())).environment


def test_the_script_gets_its_arguments_and_in_a_resume_those_of_the_resume_behind_them(
    launch: Any, tmp_path: Path
) -> None:
    one = scenario({"resume_arguments": ["--resume"]})
    assert KIND.command(launch(one)).argv[-2:] == (str(tmp_path / "train.py"), "--device=CPU")
    assert KIND.command(launch(one, resume=True)).argv[-2:] == ("--device=CPU", "--resume")


def test_a_missing_script_is_said_before_anything_starts(launch: Any) -> None:
    assert "has no script of its own" in refusals(scenario({"script": None}))
    with pytest.raises(JobError, match=r"no file .*other\.py"):
        KIND.prepare(launch(scenario({"script": "other.py"})))


def test_a_changed_script_or_neighbour_is_another_baseline(tmp_path: Path) -> None:
    script, neighbour = tmp_path / "train.py", tmp_path / "data.py"
    seen = []
    for first, second in (("a", "b"), ("a", "c"), ("d", "b")):
        script.write_text(first)
        neighbour.write_text(second)
        seen.append(tuple(KIND.fingerprint(scenario(), tmp_path).items()))
    assert len(set(seen)) == 3


def test_a_module_that_cannot_be_read_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    os.mkfifo(tmp_path / "model.py")
    with pytest.raises(JobError, match=r"job\.script: .*/model\.py: .*import it: make it readable, or move it away"):
        KIND.fingerprint(scenario(), tmp_path)


def test_what_an_editor_keeps_beside_the_script_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    before = KIND.fingerprint(scenario(), tmp_path)
    (tmp_path / ".#train.py").symlink_to("somebody@host.1234")
    (tmp_path / "backups.py").mkdir()
    assert KIND.fingerprint(scenario(), tmp_path) == before


def test_a_changed_package_beside_the_script_is_another_baseline(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "__init__.py").write_text("")
    seen = []
    for width in (1, 2):
        (tmp_path / "model" / "layers.py").write_text(f"WIDTH = {width}")
        seen.append(KIND.fingerprint(scenario(), tmp_path))
    assert seen[0] != seen[1]


def test_it_resumes_from_the_last_periodic_checkpoint_where_the_scenario_says_that_the_script_does() -> None:
    expect = {"mechanism": "none", "resume": {"step": 5}}
    plan = planned(scenario({"checkpoint_interval": 4}, faults=[KILL], expect=expect))
    assert plan.resume.restore is not None
    assert (plan.resume.restore.step, plan.resume.resume_step, plan.resume.resumes) == (4, 5, True)
    # Nobody knows whether the script loads its own rank's file: any of the replica group's will do.
    assert plan.resume.restore.holders == {0: (0, 1), 1: (0, 1)}
    assert not plan.training.gradients


@pytest.mark.parametrize("job", [{}, {"resume_arguments": ["--resume"]}])
def test_a_job_that_saves_periodic_checkpoints_is_resumed_by_default(job: dict[str, Any]) -> None:
    plan = planned(scenario({"checkpoint_interval": 4, **job}, faults=[KILL]))
    assert plan.resume.restore is not None
    assert (plan.resume.restore.step, plan.resume.resume_step, plan.resume.resumes) == (4, 5, True)
    key = next(iter(job), "checkpoint_interval")
    assert f"goes on from periodic ones (job.{key})" in " ".join(plan.explanation.reasons)


IN_SAVE = {**KILL, "trigger": {"step": 8, "phase": "checkpoint.write"}}


@pytest.mark.parametrize(
    ("job", "more", "restored"),
    [
        ({"savers": "every rank"}, {}, 4),
        ({}, {"expect": {"resume": {"step": 9}}}, 8),
        ({}, {"expect": {"resume": {"step": 5}}}, 4),
    ],
)
def test_a_rank_lost_in_its_save_leaves_the_step_to_the_scenario(
    job: dict[str, Any], more: dict[str, Any], restored: int
) -> None:
    """Rank 0 may save for both: then step 8 is there, and nobody waits for a file of rank 1."""
    plan = planned(scenario({"checkpoint_interval": 4, **job}, faults=[IN_SAVE], **more))
    assert plan.resume.restore is not None
    assert plan.resume.restore.step == restored


def test_without_a_word_of_the_scenario_a_rank_lost_in_its_save_is_refused() -> None:
    said = refusals(scenario({"checkpoint_interval": 4}, faults=[IN_SAVE]))
    assert "whether the job goes on from step 8 or from step 4 depends on the ranks that save" in said
    assert "{step: 9} or {step: 5}" in said


def test_of_a_script_one_rank_of_each_replica_group_has_to_save_unless_the_scenario_says_that_all_do() -> None:
    saves = {"checkpoint_interval": 4}
    assert not planned(scenario(saves)).training.every_rank_saves
    assert planned(scenario({**saves, "savers": "every rank"})).training.every_rank_saves
    assert "job.savers has no effect" in refusals(scenario({"savers": "every rank"}))


def test_the_built_in_scripts_save_on_every_rank() -> None:
    own: dict[str, Any] = {"kind": "plain", "script": None, "arguments": [], "checkpoint_interval": 4}
    with pytest.raises(ScenarioError, match="every rank of job kind 'plain' saves its own"):
        build_plan(
            scenario({**own, "savers": "replica groups"}),
            Source("x", NoLines()),
            traits=registry("jobs").load("plain").traits,
            kinds={},
            draw_seed=lambda: 0,
        )


@pytest.mark.parametrize("more", [{"expect": {"resume": "none"}}, {"job": {"resume": False}}])
def test_a_scenario_may_say_that_its_job_just_ends(more: dict[str, Any]) -> None:
    job = {"checkpoint_interval": 4, **more.pop("job", {})}
    plan = planned(scenario(job, faults=[KILL], **more))
    assert (plan.resume.restore, plan.resume.resumes) == (None, False)


EARLY = {**KILL, "trigger": {"step": 3}}
ARGUMENTS = {"resume_arguments": ["--resume"]}
SAVES = {**ARGUMENTS, "checkpoint_interval": 4}
SLOW = {"kind": "straggler", "target": {"rank": 1}, "trigger": {"step": 7}}


@pytest.mark.parametrize(
    ("job", "more", "words"),
    [
        (SAVES | {"resume": False}, {"faults": [KILL]}, "never used: job.resume is false"),
        (SAVES, {"faults": [KILL], "expect": {"resume": "none"}}, "never used: expect.resume says none"),
        (ARGUMENTS, {"faults": [KILL]}, "never used: the scenario names no checkpoint to go on from"),
        (SAVES, {"faults": [EARLY]}, "never used: no periodic checkpoint is complete (one every 4 steps)"),
        (SAVES, {"faults": [EARLY], "matrix": {"step": [3, 7]}}, "never used: no periodic checkpoint is complete"),
        (SAVES, {"faults": [SLOW]}, "never used: no fault takes a rank from the job"),
    ],
)
def test_arguments_of_a_resume_that_never_comes_are_refused(
    job: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    assert f"job.resume_arguments are {words}" in refusals(scenario(job, **more))


@pytest.mark.parametrize("more", [{"faults": []}, {"faults": [SLOW], "matrix": {"fault": ["straggler", "kill"]}}])
def test_where_another_cell_may_resume_the_plan_says_that_this_one_does_not(more: dict[str, Any]) -> None:
    plan = planned(scenario(SAVES, **more))
    assert "The job is not started again, so job.resume_arguments are not used." in plan.explanation.reasons


def test_a_resume_that_cannot_be_planned_is_refused_and_can_be_left_out() -> None:
    late = {**KILL, "trigger": {"elapsed": 5.0}}
    said = refusals(scenario({"checkpoint_interval": 4}, faults=[late]))
    assert "the last periodic checkpoint is not known" in said
    assert "or set job.resume: false" in said
    assert not planned(scenario({"checkpoint_interval": 4, "resume": False}, faults=[late])).resume.resumes


def test_a_resume_at_another_step_than_the_last_checkpoints_is_refused() -> None:
    said = refusals(scenario({"checkpoint_interval": 4}, faults=[KILL], expect={"resume": {"step": 9}}))
    assert "resumes from the periodic checkpoints of step 4" in said


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"protection": ["TTP"]}, "MindIO adapter only support on Ascend device but got device CPU!"),
        ({"protection": ["TRE"], "tre": {"threshold": 1.0}}, "leaves that to the script"),
        ({"agent": True}, "starts no cluster agent"),
        ({"controller": "outside"}, "hosts no controller outside the ranks"),
        ({"hccl": {}}, "MS_CPU_COMM_OP_TIMEOUT"),
        ({"graph": True}, "leaves that to the script"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(job: dict[str, Any], words: str) -> None:
    assert words in refusals(scenario(job))


def test_on_ascend_protection_is_planned_as_in_a_rehearsal() -> None:
    plan = planned(scenario({"device": "Ascend", "protection": ["TTP"]}, faults=[KILL]))
    assert plan.response.mechanism == "TTP"
    assert plan.checkpoint is not None and plan.checkpoint.step == 6


def test_ranks_of_one_host_are_one_node() -> None:
    assert "starts every rank on this host" in refusals(scenario(cluster={"ranks": 2, "nodes": 2}))


@pytest.mark.parametrize("kind", ["rehearsal", "plain"])
def test_a_rehearsal_does_not_train_on_ascend(kind: str) -> None:
    one = scenario({"kind": kind, "script": None, "arguments": [], "device": "Ascend"})
    with pytest.raises(ScenarioError, match="does not train on Ascend"):
        build_plan(
            one,
            Source("x", NoLines()),
            traits=registry("jobs").load(kind).traits,
            kinds={},
            draw_seed=lambda: 0,
        )


@pytest.mark.parametrize("kind", ["mindspore", "rehearsal"])
def test_a_script_is_found_from_the_jobs_own_directory_too(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scenario may be named by a relative path; the job runs in another directory."""
    (tmp_path / "train.py").write_text("")
    (tmp_path / "msrun").write_text("")
    monkeypatch.chdir(tmp_path)
    job = registry("jobs").load(kind)
    one = scenario({"kind": kind, "arguments": []})
    launch = Launch(one, Path(), tmp_path, tmp_path / "logs", False, (1, 2), tmp_path / "python", "standin")
    assert str(tmp_path / "train.py") in job.command(launch).argv
