"""Memory errors told apart: what is repaired with a replica, what without, and what nothing repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.job_effect import IN_UPDATE, MEMORY

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

UCE = {"protection": ("UCE",)}


def error(kind: str, phase: str, **parameters: Any) -> dict[str, Any]:
    trigger = {"step": 5, "phase": phase}
    return {"kind": kind, "target": {"rank": 1}, "trigger": trigger, "parameters": parameters}


@pytest.mark.parametrize("phase", ["step.begin", "forward", "allreduce.enter", "step.end"])
def test_an_ecc_error_outside_the_update_is_repaired_as_any_other(plan: Planner, phase: str) -> None:
    found, usual = plan(error("ecc", phase), job=UCE), plan(error("uce", phase), job=UCE)
    assert found.response.recoveries[0].mechanism == "UCE"
    assert found.response.recoveries[0].copied == (1,)
    assert found.response.recoveries[0].step == usual.response.recoveries[0].step
    assert found.faults[0].effect == usual.faults[0].effect == MEMORY


@pytest.mark.parametrize("protection", [("UCE",), ("UCE", "HCCE"), ("HCCE", "TTP"), ("TTP",)])
def test_an_ecc_error_inside_the_update_takes_the_rank(plan: Planner, protection: tuple[str, ...]) -> None:
    found = plan(error("ecc", "optimizer.update"), job={"protection": protection})
    assert found.response.mechanism == "TTP"
    assert found.faults[0].effect == IN_UPDATE
    assert found.checkpoint is not None and found.checkpoint.step == 5
    assert 1 not in found.checkpoint.entitled[0]
    assert any(
        "falls into the optimizer's update cannot be repaired online" in reason for reason in found.explanation.reasons
    )


def test_a_memory_error_without_a_time_is_repaired_inside_the_update_too(plan: Planner) -> None:
    assert plan(error("uce", "optimizer.update"), job=UCE).response.mechanism == "UCE"


@pytest.mark.parametrize("kind", ["uce", "ecc"])
def test_a_low_level_error_copies_nothing(plan: Planner, kind: str) -> None:
    found = plan(error(kind, "forward", strategy="low level"), job=UCE)
    assert (found.response.mechanism, found.response.recoveries[0].copied) == ("UCE", ())
    assert any("the memory held nothing that is needed" in reason for reason in found.explanation.reasons)


def test_a_low_level_error_at_the_update_is_refused_since_nothing_brings_the_rank_to_the_others(plan: Planner) -> None:
    """Seen in a run: the others end step 5, the rank trains it again with the next batch, and they differ for good."""
    words = plan.refused(error("uce", "optimizer.update", strategy="low level"), job=UCE)
    assert "rank 1 would be a step behind: the others finish step 5" in words
    assert plan(error("uce", "step.end", strategy="low level"), job=UCE).response.mechanism == "UCE"


@pytest.mark.parametrize("strategy", ["low level", "high level"])
def test_errors_on_all_replicas_are_not_repaired_whatever_was_hit(plan: Planner, strategy: str) -> None:
    """Seen with MindIO TFT 26.1: it asks for a whole replica before it hears that nothing was lost."""
    fault = {**error("uce", "forward", strategy=strategy), "target": {"ranks": (0, 1, 2, 3)}}
    words = plan.refused(fault, job=UCE)
    assert "every rank of replica group [0, 1, 2, 3] has a memory error at the same moment" in words
    assert ("since it hears later that nothing was lost" in words) == (strategy == "low level")
    found = plan(fault, job=UCE, expect={"checkpoint": "none"})
    assert (found.response.mechanism, found.response.recoveries) == ("none", ())


@pytest.mark.parametrize("strategy", ["low level", "high level"])
def test_the_agent_is_offered_no_repair_where_no_whole_replica_is_left(plan: Planner, strategy: str) -> None:
    """Seen with MindIO TFT 26.1: it is offered nothing but exit, so no repair is tried."""
    fault = {**error("uce", "forward", strategy=strategy), "target": {"ranks": (0, 1, 2, 3)}}
    expect = {"checkpoint": "none"}
    for protection in (("UCE",), ("UCE", "ARF")):
        found = plan(fault, job={**UCE, "protection": protection, "agent": True}, expect=expect)
        assert (found.response.mechanism, found.response.recoveries) == ("none", ())
        assert any("can choose nothing but exit" in reason for reason in found.explanation.reasons)
    words = plan.refused(fault, job={**UCE, "protection": ("UCE", "RSC"), "agent": True}, expect=expect)
    assert "RSC behind UCE is not yet supported" in words


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"strategy": "lowlevel"}, "knows no strategy 'lowlevel'"),
        ({"strategy": 2}, "knows no strategy 2"),
        ({"strateggy": "low level"}, "has no parameter 'strateggy'"),
    ],
)
def test_wrong_parameters_are_refused(plan: Planner, parameters: dict[str, Any], said: str) -> None:
    assert said in plan.refused(error("uce", "forward", **parameters), job=UCE)
