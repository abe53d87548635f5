"""A broken link is planned where what follows is known, and refused elsewhere; options and comparison are planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.parts.comparison import Comparison
from chaos.plan.render import render

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

LINK = {"kind": "link", "target": {"rank": 1}, "trigger": {"step": 5, "phase": "allreduce.enter"}}


def test_a_link_without_a_timeout_is_refused(plan: Planner) -> None:
    assert "without job.hccl the timeout of a collective" in plan.refused(LINK, job={"protection": ()})


@pytest.mark.parametrize("protection", [("TTP",), ("HCCE",), ("UCE", "RSC")])
def test_a_link_beside_mechanisms_that_need_an_order_is_refused(plan: Planner, protection: tuple[Any, ...]) -> None:
    text = plan.refused(LINK, job={"protection": protection, "hccl": {}})
    assert "depends on the order in which the ranks give up" in text


def test_the_link_of_a_card_is_planned_without_a_timeout_of_the_device_layer(plan: Planner) -> None:
    """On several nodes, where it matters. HCCL's own timeout is in the job's environment there."""
    cut = {**LINK, "kind": "npu-link-down"}
    assert plan(cut, job={"protection": ()}).response.mechanism == "none"
    restarted = plan(cut, job={"protection": ("RSC",), "agent": True, "checkpoint_interval": 2})
    assert [(recovery.mechanism, recovery.step) for recovery in restarted.response.recoveries] == [("RSC", 4)]
    assert "depends on the order" in plan.refused(cut, job={"protection": ("HCCE",)})


def test_a_link_breaks_in_the_exchange_only(plan: Planner) -> None:
    late = {**LINK, "trigger": {"step": 5, "phase": "step.end"}}
    assert "while the gradients are exchanged" in plan.refused(late, job={"protection": (), "hccl": {}})


def test_the_plan_holds_scaled_times_options_and_comparison(plan: Planner) -> None:
    job = {"hccl": {"watchdog": True, "exec_timeout": 1800.0, "time_scale": 0.01}, "storage": {"memory": True}}
    found = plan(job=job, matrix={"memory": [False, True]}, compare={"axis": "memory", "at_most": {"load": 0.5}})
    assert (
        found.fault_tolerance.recovery_options.watchdog,
        found.fault_tolerance.recovery_options.exec_timeout,
        found.fault_tolerance.recovery_options.poll,
    ) == (True, 18.0, 0.02)
    assert (
        found.fault_tolerance.recovery_options.memory,
        found.fault_tolerance.recovery_options.asynchronous_saving,
        found.fault_tolerance.recovery_options.compile_cache,
    ) == (True, False, False)
    assert found.comparison == Comparison("memory", {"load": 0.5})
    assert loads(dumps(found)) == found
    text = render(found)
    assert (
        "options     collectives give up after 18 s (scaled by 0.01), watchdog every 0.02 s, latest checkpoint" in text
    )
    assert "compare     over memory, second value against first: load at most 0.5\n" in text


def test_a_plan_without_options_says_nothing_of_them(plan: Planner) -> None:
    assert "options" not in render(plan())
