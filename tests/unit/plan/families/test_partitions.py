"""A partition is nothing, or a loss of ranks, by how long it lasts; one of which neither is known is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.faults.network import partition
from chaos.plan.budgets import PROFILES
from chaos.plan.job_effect import NONE, SUSPENSION
from chaos.plan.rules.parameters import Parameters

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

NODES = {"nodes": 2, "ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
WHOLE: Parameters = partition.KIND.parameters


def cut(target: dict[str, Any] | None = None, trigger: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    place = {"step": 6, "phase": "forward"} if trigger is None else trigger
    return {"id": "cut", "kind": "partition", "target": target or {"node": 1}, "trigger": place, "parameters": given}


@pytest.mark.parametrize("direction", ["both", "out", "in"])
@pytest.mark.parametrize("seconds", [0.1, 1, 2])
def test_a_short_one_is_answered_by_nobody(plan: Planner, seconds: float, direction: str) -> None:
    found = plan(cut({"rank": 0}, seconds=seconds, direction=direction), cluster=NODES, job={"protection": ("ARF",)})
    assert (found.response.mechanism, found.response.recoveries, found.faults[0].effect) == (None, (), NONE)


@pytest.mark.parametrize("given", [{}, {"seconds": 18}, {"seconds": 30, "direction": "both"}])
def test_a_long_one_loses_its_ranks_and_the_side_of_the_controller_saves(plan: Planner, given: dict[str, Any]) -> None:
    found = plan(cut(**given), cluster=NODES)
    assert (found.response.mechanism, found.faults[0].effect, found.resume.resume_step) == ("TTP", SUSPENSION, 6)
    assert found.checkpoint is not None
    assert (found.checkpoint.step, found.checkpoint.savers) == (5, (0, 1))
    assert found.response.budget.phases["detection"] == PROFILES["fast"]["TTP"].silence
    (told,) = [reason for reason in found.explanation.reasons if "cut off by fault cut" in reason]
    seconds = given.get("seconds")
    end = "they are ended with the launch" if seconds is None else f"back after {seconds} s they find no controller"
    assert end in told


def test_behind_the_all_reduce_the_step_is_saved(plan: Planner) -> None:
    found = plan(cut(trigger={"step": 6, "phase": "optimizer.update"}), cluster=NODES)
    assert found.checkpoint is not None
    assert found.checkpoint.step == 6


def test_all_ranks_of_several_nodes_are_whole_nodes(plan: Planner) -> None:
    cluster = {"nodes": 4, "ranks": 8, "parallel": {"data_parallel": 4, "model_parallel": 2}}
    found = plan(cut({"ranks": [4, 5, 6, 7]}), cluster=cluster)
    assert found.checkpoint is not None
    assert found.checkpoint.savers == (0, 1)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (cut({"rank": 3}), "cuts off rank 2 too, on the same nodes as its target"),
        (cut({"node": 0}), "lost to the controller is the other side, which is ranks 2-3"),
        (cut({"ranks": [0, 1, 2, 3]}), "and there is none"),
        (cut(direction="out"), "lets through what goes the other way"),
        (cut(direction="in"), "lets through what goes the other way"),
        (cut(seconds=2.1), "may count as lost after more than 2 s, and the controller may take 18 s"),
        (cut(seconds=17.9), "a network that returns after 17.9 s may return before, during or after that"),
        (cut(seconds=300), "may take 421 s more to end, but deadlines.end gives them 300"),
        (cut(trigger={"handler": "save_ckpt"}), "cuts ranks off inside a recovery"),
    ],
)
def test_what_nobody_knows_the_outcome_of_is_refused(plan: Planner, given: dict[str, Any], reason: str) -> None:
    kill = {"kind": "kill", "target": {"rank": 0}, "trigger": {"step": 4}}
    faults = (kill, given) if "handler" in given["trigger"] else (given,)
    assert reason in plan.refused(*faults, cluster=NODES)


@pytest.mark.parametrize(
    ("job", "seconds", "reason"),
    [
        ({"protection": ()}, None, "without TTP no controller misses a heartbeat"),
        ({"protection": ("HCCE",)}, None, "without TTP no controller misses a heartbeat"),
        ({"protection": ("ARF",)}, None, "with ARF no outcome is planned for fault"),
        ({"protection": ("TTP", "RSC"), "agent": True}, None, "with RSC no outcome is planned for fault"),
        ({"timings": "vendor"}, 54, "the controller may take 55 s"),
        ({"timings": "hardware"}, 54, "for timings hardware"),
    ],
)
def test_it_is_planned_with_ttp_alone_and_timings_that_are_known(
    plan: Planner, job: dict[str, Any], seconds: float | None, reason: str
) -> None:
    given: dict[str, Any] = {} if seconds is None else {"seconds": seconds}
    assert reason in plan.refused(cut(**given), cluster=NODES, job=job)


def test_a_pause_beside_it_is_refused(plan: Planner) -> None:
    pause = {"kind": "pause", "target": {"ranks": [0, 1, 2, 3]}, "trigger": {"step": 2}, "parameters": {"seconds": 1}}
    refused = plan.refused(pause, cut(), cluster=NODES, job={"protection": ("TTP", "TSP")})
    assert "do not learn that the pause has begun" in refused


@pytest.mark.parametrize("kind", ["partition", "port-blocked", "network-delay", "network-loss", "network-rate"])
def test_what_holds_packets_up_beside_it_is_refused(plan: Planner, kind: str) -> None:
    plan.effects = {**plan.effects, kind: SUSPENSION if kind == "partition" else NONE}
    other = {"kind": kind, "target": {"node": 1}, "trigger": {"step": 2}, "parameters": {"seconds": 1}}
    assert "may have held up: it is not known which step the others can end" in plan.refused(
        other, cut(), cluster=NODES
    )


def test_a_lost_replica_group_is_told_as_with_any_loss(plan: Planner) -> None:
    slices = {"nodes": 2, "ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 1, "pipeline_stage": 2}}
    assert "no complete copy of the state is left" in plan.refused(cut(), cluster=slices)
    found = plan(cut(), cluster=slices, expect={"checkpoint": "none"})
    assert (found.response.mechanism, found.checkpoint) == ("none", None)


def test_nothing_can_wait_for_its_end(plan: Planner) -> None:
    plan.lasting = frozenset({"partition"})
    kill = {"kind": "kill", "target": {"rank": 0}, "trigger": {"healed": "cut"}}
    assert "and by then the remaining side has saved and ended" in plan.refused(cut(), kill, cluster=NODES)
    assert "has saved" in plan.refused(
        cut(), {**kill, "trigger": {"any": [{"step": 3}, kill["trigger"]]}}, cluster=NODES
    )


def test_the_job_is_started_again_as_much_later_as_the_ranks_may_take_to_end(plan: Planner) -> None:
    lasts, heals = plan(cut(), cluster=NODES).response.budget, plan(cut(seconds=20), cluster=NODES).response.budget
    assert heals.phases["relaunch"] - lasts.phases["relaunch"] == 41
    assert lasts.total is not None
    assert heals.total == lasts.total + 41
    slow = plan(cut(seconds=130), cluster=NODES, job={"timings": "vendor"}, deadlines={"end": "10m"}).response.budget
    assert slow.phases["relaunch"] == PROFILES["vendor"]["TTP"].phases["relaunch"] + 130 + 120 + 75


def test_the_parameter_tells_the_shortest_times_as_the_plan_has_them(plan: Planner) -> None:
    about = WHOLE["seconds"].about
    for timings, least in (("fast", 18), ("vendor", 55)):
        job = {"timings": timings}
        assert plan(cut(seconds=least), cluster=NODES, job=job).response.mechanism == "TTP"
        assert "may return before" in plan.refused(cut(seconds=least - 0.1), cluster=NODES, job=job)
        assert str(least) in about
