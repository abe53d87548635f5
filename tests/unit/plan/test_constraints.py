"""What the vendor's constraints forbid is refused with a message of its own, at the line that violates it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.recovery.mechanism import NEEDS, need_message
from chaos.plan.recovery.vendor import DOCUMENT

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

MECHANISMS = ("TTP", "UCE", "HCCE", "TRE", "ARF", "TSP", "RSC")
TABLE = {
    "MindIO": {"TTP", "UCE", "HCCE", "ARF", "TSP"},
    "replicas": {"TTP", "UCE", "ARF"},
    "sink size 1": {"TTP", "UCE", "HCCE", "ARF"},
}
"""The document's table of constraints and dependencies, written down independently."""


def kill(rank: int, step: int = 6, **more: Any) -> dict[str, Any]:
    return {"kind": "kill", "target": {"rank": rank}, "trigger": {"step": step}, **more}


@pytest.mark.parametrize("need", TABLE)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_cell_of_the_documents_table_has_its_own_message(need: str, mechanism: str) -> None:
    message = need_message(mechanism, need)
    assert (message is not None) == (mechanism in TABLE[need])
    if message is not None:
        assert message.startswith(f"{mechanism} needs {need} ({DOCUMENT}")
    messages = [why for cells in NEEDS.values() for why in cells.values()]
    assert len(set(messages)) == len(messages)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_sink_above_one_is_refused_for_those_that_need_it(plan: Planner, mechanism: str) -> None:
    plan.lines = {"job.sink_size": 9}
    job = {"sink_size": 2, "protection": (mechanism,)}
    if mechanism not in TABLE["sink size 1"]:
        assert plan(job=job).response.mechanism is None
        return
    text = plan.refused(job=job)
    assert "example.yaml:9:3: the sink size is 2." in text
    assert f"{mechanism} needs sink size 1 ({DOCUMENT}" in text
    assert "set job.sink_size: 1" in text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_layout_without_replica_is_refused_for_those_that_need_one(plan: Planner, mechanism: str) -> None:
    plan.lines = {"cluster.parallel.data_parallel": 4}
    cluster = {"ranks": 4, "parallel": {"model_parallel": 4}}
    if mechanism not in TABLE["replicas"]:
        assert plan(cluster=cluster, job={"protection": (mechanism,)}).response.mechanism is None
        return
    text = plan.refused(cluster=cluster, job={"protection": (mechanism,)})
    assert "example.yaml:4:3: no rank has a replica: data_parallel is 1." in text
    assert f"{mechanism} needs replicas ({DOCUMENT}" in text


@pytest.mark.parametrize(
    ("size", "said"),
    [(4, "optimizer_weight_shard_size 4"), (None, "optimizer_weight_shard_size by default the whole data-parallel")],
)
def test_optimizer_shards_that_leave_one_copy_are_refused(plan: Planner, size: int | None, said: str) -> None:
    plan.lines = {"cluster.parallel": 3, "cluster.parallel.optimizer_weight_shard_size": 6}
    parallel = {"data_parallel": 4, "enable_parallel_optimizer": True, "optimizer_weight_shard_size": size}
    text = plan.refused(kill(1), cluster={"ranks": 4, "parallel": parallel})
    assert f"example.yaml:6:3: the optimizer shards leave one copy: data_parallel 4, {said}" in text
    assert "TTP needs replicas" in text


def test_shards_of_pytorch_that_are_there_once_are_refused(plan: Planner) -> None:
    text = plan.refused(kill(1), cluster={"ranks": 4, "parallel": {"data_parallel": 4, "shard": "optimizer"}})
    assert "the shards of the state are there once (copies)" in text
    assert "cluster.parallel.copies must be 2 or more" in text


def test_a_constraint_of_an_implied_mechanism_says_what_implies_it(plan: Planner) -> None:
    assert "UCE switches TTP on; TTP needs sink size 1" in plan.refused(job={"sink_size": 4, "protection": ("UCE",)})


def test_layout_constraints_do_not_bind_an_unprotected_job(plan: Planner) -> None:
    found = plan(kill(0), cluster={"ranks": 1}, job={"sink_size": 2, "protection": ()})
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes, found.resume.resume_step) == (
        "none",
        None,
        False,
        None,
    )


# Losses that cannot be saved: an error, unless the scenario is there to prove it


WHOLE_GROUP = {"kind": "kill", "target": {"replica_group": 1}, "trigger": {"step": 6}}
UNSAVED = [
    ("faults.1.target", [kill(2, 6), kill(0, 6)], "rank 0 hosts the MindIO TFT controller and is lost"),
    ("faults.0.target", [WHOLE_GROUP], "every rank of replica group [1, 5] is lost"),
    ("faults.0.trigger", [kill(2, 1)], "the ranks are lost before step 1 is complete"),
]


@pytest.mark.parametrize(("path", "faults", "message"), UNSAVED)
def test_a_loss_that_cannot_be_saved_is_refused_unless_nothing_is_expected(
    plan: Planner, sharded: dict[str, Any], path: str, faults: list[dict[str, Any]], message: str
) -> None:
    plan.lines = {path: 21}
    text = plan.refused(*faults, cluster=sharded)
    assert f"example.yaml:21:3: {message}" in text
    assert "write expect.checkpoint: none if the scenario is to prove that" in text

    found = plan(*faults, cluster=sharded, expect={"checkpoint": "none", "resume": "none", "mechanism": "none"})
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes, found.resume.resume_step) == (
        "none",
        None,
        False,
        None,
    )
    assert found.response.budget.total is None
    assert any(message in reason[0].lower() + reason[1:] for reason in found.explanation.reasons)


@pytest.mark.parametrize(("path", "faults", "message"), UNSAVED)
def test_a_checkpoint_expected_from_such_a_loss_is_refused(
    plan: Planner, sharded: dict[str, Any], path: str, faults: list[dict[str, Any]], message: str
) -> None:
    assert message in plan.refused(*faults, cluster=sharded, expect={"checkpoint": {"step": 5}})


def test_rank_0_may_die_when_the_controller_lives_outside(plan: Planner) -> None:
    found = plan(kill(0), job={"controller": "outside"})
    assert found.checkpoint is not None and found.checkpoint.savers == (1,)


def test_suspending_the_controllers_rank_is_a_loss_of_the_controller(plan: Planner) -> None:
    assert "hosts the MindIO TFT controller" in plan.refused({**kill(0), "kind": "stop"})


def test_several_lost_groups_are_counted(plan: Planner, sharded: dict[str, Any]) -> None:
    fault = {"kind": "kill", "target": {"ranks": (1, 2, 3, 5, 6, 7)}, "trigger": {"step": 6}}
    assert "every rank of 3 replica groups ([1, 5] is the first) is lost" in plan.refused(fault, cluster=sharded)


@pytest.mark.parametrize("phase", ["optimizer.update", "step.end", "checkpoint.end"])
def test_a_loss_behind_the_last_all_reduce_is_refused_as_pointless(plan: Planner, phase: str) -> None:
    fault = kill(1, trigger={"step": 10, "phase": phase})
    for expect in ({}, {"checkpoint": "none"}):
        text = plan.refused(fault, job={"checkpoint_interval": 5}, expect=expect)
        assert f"lost at {phase} of step 10, after the last all-reduce of the job" in text


def test_a_loss_in_the_last_step_before_its_all_reduce_is_saved(plan: Planner) -> None:
    found = plan(kill(1, trigger={"step": 10, "phase": "allreduce.enter"}))
    assert found.checkpoint is not None and (found.checkpoint.step, found.resume.resume_step) == (9, 10)


def test_an_open_loss_in_a_job_of_one_step_has_nothing_to_save(plan: Planner) -> None:
    text = plan.refused(kill(1, trigger={"elapsed": "1s"}), job={"steps": 1})
    assert "before step 1 is complete" in text


# Mechanisms


def test_a_mechanism_that_has_nothing_to_do_may_be_on(plan: Planner) -> None:
    found = plan(job={"protection": MECHANISMS})
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes) == (None, None, False)


@pytest.mark.parametrize("protection", [(), ("HCCE",), ("TRE",), ("TSP",)])
def test_without_a_mechanism_for_lost_ranks_the_job_just_ends(plan: Planner, protection: tuple[str, ...]) -> None:
    found = plan(kill(1), job={"protection": protection})
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes) == ("none", None, False)
    assert any("no mechanism can act" in reason for reason in found.explanation.reasons)


def test_a_harmless_fault_calls_for_no_mechanism(plan: Planner) -> None:
    found = plan({"kind": "mark", "target": {"rank": 0}, "trigger": {"step": 3}})
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes) == (None, None, False)
    assert [fault.kind for fault in found.faults] == ["mark"]


def test_a_layout_that_does_not_add_up_is_an_error_with_its_line(plan: Planner) -> None:
    plan.lines = {"cluster.parallel": 4}
    text = plan.refused(cluster={"ranks": 4, "parallel": {"data_parallel": 3}})
    assert text.startswith("example.yaml:4:3: data_parallel 3 x model_parallel 1")


def test_more_ranks_than_the_controller_accepts_are_said_and_not_refused(plan: Planner) -> None:
    found = plan(cluster={"ranks": 131_072})
    assert any("controller accepts at most 100,000 ranks" in reason for reason in found.explanation.reasons)
