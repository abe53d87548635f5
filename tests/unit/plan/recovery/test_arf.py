"""Lost ranks are started again: when ARF answers, which ranks it replaces, after which step, and what follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.budgets import PROFILES
from chaos.plan.model import Plan
from chaos.plan.parts.response import PHASES, Recovery
from chaos.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

ARF: dict[str, Any] = {"protection": ("ARF",), "agent": True}
PAIRS = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
"""Replica groups [0, 2] and [1, 3]."""


def kill(at: int, phase: str = "forward", name: str = "kill", **target: Any) -> dict[str, Any]:
    return {"id": name, "kind": "kill", "target": target or {"rank": 2}, "trigger": {"step": at, "phase": phase}}


def inside(handler: str, rank: int = 1, after: str = "kill") -> dict[str, Any]:
    return {"id": "second", "kind": "kill", "target": {"rank": rank}, "trigger": {"handler": handler, "after": after}}


def replaces(plan: Plan) -> list[tuple[tuple[int, ...], int | None]]:
    """Ranks and step of each rescheduling; nothing is saved and nothing started again from outside."""
    assert (plan.response.mechanism, plan.checkpoint, plan.resume.resumes) == ("ARF", None, False)
    assert all(
        recovery.mechanism == "ARF" and recovery.copied == recovery.restarted for recovery in plan.response.recoveries
    )
    return [(recovery.restarted, recovery.step) for recovery in plan.response.recoveries]


@pytest.mark.parametrize(("phase", "step"), [("forward", 4), ("allreduce.enter", 4), ("optimizer.update", 5)])
def test_only_the_lost_rank_is_replaced_and_all_go_on_after_the_last_complete_step(
    plan: Planner, phase: str, step: int
) -> None:
    found = plan(kill(5, phase), job=ARF)
    assert replaces(found) == [((2,), step)]
    why = " ".join(found.explanation.reasons)
    assert "ARF starts only rank 2 again" in why
    assert f"all go on after step {step}" in why
    assert "ARF switches TTP on" in why


def test_ranks_that_are_lost_together_are_replaced_together_and_later_ones_by_themselves(plan: Planner) -> None:
    found = plan(kill(4, ranks=(1, 2)), kill(8, name="again", rank=1), job=ARF)
    assert replaces(found) == [((1, 2), 3), ((1,), 7)]


def test_a_whole_node_is_replaced(plan: Planner) -> None:
    assert replaces(plan(kill(5, node=1), job=ARF, cluster={"ranks": 4, "nodes": 2})) == [((2, 3), 4)]


def test_rank_0_is_replaced_like_any_other_since_the_agent_hosts_the_controller(plan: Planner) -> None:
    assert replaces(plan(kill(5, rank=0), job=ARF)) == [((0,), 4)]


@pytest.mark.parametrize(
    ("handler", "rank", "savers"),
    [("stop", 1, (0,)), ("clean", 1, (0,)), ("rebuild_group", 1, (0,)), ("repair", 3, (0,)), ("clean", 0, (1,))],
)
def test_a_second_death_in_the_recovery_ends_in_a_checkpoint_of_the_ranks_that_are_left(
    plan: Planner, handler: str, rank: int, savers: tuple[int, ...]
) -> None:
    found = plan(kill(5), inside(handler, rank), job=ARF)
    assert found.response.recoveries == (
        Recovery("ARF", ("kill",), 4, succeeds=False, restarted=(2,), copied=(2,)),
        Recovery("TTP", ("kill",), 4),
    )
    assert found.response.mechanism == "TTP"
    assert found.checkpoint is not None
    assert (found.checkpoint.savers, found.checkpoint.step) == (savers, 4)
    assert found.resume.resume_step == 5


def test_a_rank_that_was_moved_with_its_node_in_vain_has_no_state_to_save(plan: Planner) -> None:
    nodes = {"ranks": 4, "nodes": 2}
    found = plan(kill(5, rank=0), inside("clean", 3), job=ARF, cluster=nodes)
    assert found.response.recoveries[0].restarted == (0, 1)
    assert found.checkpoint is not None and found.checkpoint.entitled == {2: (2,)}
    both = {**inside("clean"), "target": {"ranks": (2, 3)}}
    assert "no complete copy of the state is left" in plan.refused(kill(5, rank=0), both, job=ARF, cluster=nodes)
    assert plan(kill(5, rank=3), job=ARF, cluster=nodes).response.recoveries[0].restarted == (2, 3)


def test_a_second_death_that_takes_the_last_replica_leaves_nothing(plan: Planner) -> None:
    found = plan(kill(5), inside("clean", rank=0), job=ARF, cluster=PAIRS, expect={"checkpoint": "none"})
    assert found.response.mechanism == "none"
    assert [(recovery.mechanism, recovery.succeeds) for recovery in found.response.recoveries] == [("ARF", False)]


def test_without_an_agent_nobody_starts_the_rank_again_and_the_limit_is_in_the_budget(plan: Planner) -> None:
    found = plan(kill(5), job={"protection": ("ARF",)})
    assert [(recovery.mechanism, recovery.succeeds, recovery.restarted) for recovery in found.response.recoveries] == [
        ("ARF", False, ()),
        ("TTP", True, ()),
    ]
    assert "without job.agent nothing restarts a lost rank" in " ".join(found.explanation.reasons)
    alone = plan(kill(5), job={"protection": ("TTP",)})
    given_up = PROFILES["fast"]["ARF"].given_up
    assert found.response.budget.phases["stop"] == alone.response.budget.phases["stop"] + given_up
    assert found.response.budget.total == (alone.response.budget.total or 0) + given_up


@pytest.mark.parametrize(
    "job",
    [
        {"protection": ("ARF",), "controller": "outside"},
        {"protection": ("ARF",), "agent": True, "strategies": ("dump", "exit")},
    ],
)
def test_where_recover_cannot_be_chosen_the_checkpoint_is_saved_at_once(plan: Planner, job: dict[str, Any]) -> None:
    assert [recovery.mechanism for recovery in plan(kill(5), job=job).response.recoveries] == ["TTP"]


def test_a_whole_replica_group_cannot_be_replaced(plan: Planner) -> None:
    with pytest.raises(ScenarioError, match=r"every rank of replica group \[0, 2\] is lost"):
        plan(kill(5, ranks=(0, 2)), job=ARF, cluster=PAIRS)
    found = plan(kill(5, ranks=(0, 2)), job=ARF, cluster=PAIRS, expect={"checkpoint": "none"})
    assert (found.response.mechanism, found.response.recoveries) == ("none", ())


def test_before_the_first_step_there_is_no_state_to_copy(plan: Planner) -> None:
    found = plan(kill(1), job=ARF, expect={"checkpoint": "none"})
    assert (found.response.mechanism, found.response.recoveries) == ("none", ())


def test_a_memory_error_without_uce_takes_its_rank_and_arf_replaces_it(plan: Planner) -> None:
    error = {"kind": "uce", "target": {"rank": 1}, "trigger": {"step": 5, "phase": "forward"}}
    assert replaces(plan(error, job=ARF)) == [((1,), 4)]


ERROR = {"id": "uce", "kind": "uce", "target": {"rank": 1}, "trigger": {"step": 5, "phase": "forward"}}
BOTH: dict[str, Any] = {"protection": ("UCE", "ARF"), "agent": True}


def test_a_rank_that_cannot_be_cleaned_is_replaced_and_nothing_is_saved(plan: Planner) -> None:
    unclean = {**inside("clean", rank=1, after="uce"), "kind": "uce"}
    found = plan(ERROR, unclean, job=BOTH)
    assert [(recovery.mechanism, recovery.succeeds) for recovery in found.response.recoveries] == [
        ("UCE", False),
        ("ARF", True),
    ]
    assert found.response.recoveries[1].restarted == (1,)


def test_one_after_the_other_uce_and_arf_fail_and_the_rest_is_saved(plan: Planner) -> None:
    unclean = {**inside("clean", rank=1, after="uce"), "kind": "uce"}
    death = {**inside("rebuild_group", rank=0, after="second"), "id": "third"}
    found = plan(ERROR, unclean, death, job=BOTH)
    tried = [(recovery.mechanism, recovery.succeeds) for recovery in found.response.recoveries]
    assert tried == [("UCE", False), ("ARF", False), ("TTP", True)]
    assert found.checkpoint is not None
    assert found.checkpoint.entitled == {2: (2, 3)}


@pytest.mark.parametrize(
    ("kind", "handler", "rank"),
    [
        ("kill", "clean", 3),
        ("kill", "repair", 2),
        ("uce", "repair", 2),
        ("hcce", "clean", 1),
        ("uce", "clean", 3),  # MindSpore asks only the device of a rank with a memory error; this one raises
    ],
)
def test_after_any_other_failure_of_a_repair_nothing_is_replaced_or_saved(
    plan: Planner, kind: str, handler: str, rank: int
) -> None:
    spoilt = {**inside(handler, rank=rank, after="uce"), "kind": kind}
    text = plan.refused(ERROR, spoilt, job=BOTH)
    assert "ranks may have changed their state" in text
    found = plan(ERROR, spoilt, job=BOTH, expect={"checkpoint": "none"})
    assert found.response.mechanism == "none"
    assert [(recovery.mechanism, recovery.succeeds) for recovery in found.response.recoveries] == [("UCE", False)]


def test_phases_and_budgets_are_those_of_the_profile(plan: Planner) -> None:
    for timings, profile in (("fast", PROFILES["fast"]["ARF"]), ("vendor", PROFILES["vendor"]["ARF"])):
        found = plan(kill(5), job={**ARF, "timings": timings})
        assert tuple(found.response.budget.phases) == PHASES["ARF"]
        assert (found.response.budget.phases, found.response.budget.total) == (dict(profile.phases), profile.total)


@pytest.mark.parametrize(("phase", "moved"), [("forward", (2,)), ("optimizer.update", (2, 3))])
def test_a_memory_error_in_the_update_is_a_process_fault_and_moves_the_node(
    plan: Planner, phase: str, moved: tuple[int, ...]
) -> None:
    ecc = {"id": "ecc", "kind": "ecc", "target": {"rank": 2}, "trigger": {"step": 5, "phase": phase}}
    (recovery,) = plan(ecc, job=ARF, cluster={"ranks": 4, "nodes": 2}).response.recoveries
    assert (recovery.mechanism, recovery.restarted) == ("ARF", moved)


@pytest.mark.parametrize("handler", ["stop", "clean", "rebuild_group"])
def test_a_fault_in_a_rank_that_is_moved_with_its_node_is_refused(plan: Planner, handler: str) -> None:
    nodes = {"ranks": 4, "nodes": 2}
    with pytest.raises(ScenarioError, match="the node of rank 3 is moved as a whole"):
        plan(kill(5), inside(handler, rank=3), job=ARF, cluster=nodes)
    assert not plan(kill(5), inside(handler, rank=1), job=ARF, cluster=nodes).response.recoveries[0].succeeds


def test_nobody_is_left_to_copy_from_when_whole_nodes_are_moved(plan: Planner) -> None:
    text = plan.refused(kill(5, ranks=(0, 3)), cluster={"ranks": 4, "nodes": 2}, job=ARF)
    assert "some state has no replica left" in text


def test_a_loss_at_an_open_step_is_refused(plan: Planner) -> None:
    fault = {"kind": "kill", "target": {"rank": 1}, "trigger": {"elapsed": "2s"}}
    assert "leaves the step open" in plan.refused(fault, job=ARF)
