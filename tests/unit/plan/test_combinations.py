"""Faults in a fixed order: during a recovery, several at once, one after another, and again on the same rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.base.registry import registry
from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits
from chaos.plan.trigger_words import Point
from chaos.run.inject.triggers import Known, fires
from tests.unit.plan.conftest import EFFECTS

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

ARF = {"protection": ("TTP", "UCE", "HCCE", "ARF"), "agent": True}
KINDS = sorted(registry("faults").some_names())


@pytest.fixture
def real(plan: Planner) -> Planner:
    """The planner with the registered kinds' own effects."""
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints")
    plan.effects = {**EFFECTS, **{name: registry("faults").load(name).effect for name in KINDS}}
    plan.lasting = frozenset({"storage-stall", "cpu-quota", "pause"})
    return plan


def fault(name: str, kind: str, rank: int, **trigger: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, "target": {"rank": rank}, "trigger": trigger}


def test_a_fault_during_a_recovery(real: Planner) -> None:
    """A rank crashes; while another one clears up for that, it crashes too."""
    first = fault("first", "segfault", 1, step=5)
    second = fault("second", "abort", 2, handler="clean", after="first")
    found = real(first, second, job={**ARF, "steps": 12})
    assert [(recovery.mechanism, recovery.succeeds) for recovery in found.response.recoveries] == [
        ("ARF", False),
        ("TTP", True),
    ]


def test_several_at_once_are_one_loss(real: Planner) -> None:
    both = (fault("a", "segfault", 1, step=5), fault("b", "exit", 2, step=5))
    found = real(*both)
    assert [(recovery.mechanism, recovery.faults) for recovery in found.response.recoveries] == [("TTP", ("a", "b"))]


def test_of_several_at_once_the_order_can_be_fixed(real: Planner) -> None:
    """Both ranks are held at their barriers; the second fault is made when the first has landed, in every run."""
    first, second = fault("a", "segfault", 1, step=5), fault("b", "exit", 2, step=5, after="a")
    planned = {planned_fault.id: planned_fault for planned_fault in real(first, second).faults}
    held: dict[str, dict[Point, set[int]]] = {"a": {(5, "step.begin"): {1}}, "b": {(5, "step.begin"): {2}}}
    known = Known(held=held)
    assert [name for name, planned_fault in planned.items() if fires(planned_fault, known)] == ["a"]
    known.landed.add("a")
    assert fires(planned["b"], known)


def test_one_after_another_has_been_repaired_and_again_on_the_same_rank(real: Planner) -> None:
    """A later step is reached only behind the recovery."""
    again = (fault("a", "segfault", 1, step=4), fault("b", "link-error", 1, step=7), fault("c", "abort", 1, step=9))
    found = real(*again, job={**ARF, "steps": 14})
    assert [(recovery.mechanism, recovery.faults, recovery.restarted) for recovery in found.response.recoveries] == [
        ("ARF", ("a",), (1,)),
        ("ARF", ("b",), (1,)),
        ("ARF", ("c",), (1,)),
    ]


def test_one_after_another_has_ended(real: Planner) -> None:
    stall = fault("stall", "storage-stall", 0, step=3)
    kill = fault("kill", "kill", 1, step=5, healed="stall")
    (_, planned) = real(stall, kill).faults
    known = Known(held={"kill": {(5, "step.begin"): {1}}}, landed={"stall"})
    assert not fires(planned, known)
    known.healed.add("stall")
    assert fires(planned, known)


def test_what_has_no_end_before_the_jobs_cannot_be_waited_for(real: Planner) -> None:
    first, second = fault("a", "segfault", 1, step=4), fault("b", "abort", 2, step=7, healed="a")
    text = real.refused(first, second, job={**ARF, "steps": 14})
    assert "is a segfault, which does not end by the harness's word while the job goes on" in text
    assert "after a recovery use a later step" in text
