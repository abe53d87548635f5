"""The launcher can be hit where it lives and nothing but restarts hangs on it; all else is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.job_effect import NONE
from chaos.plan.render import render

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

AGENT = {"protection": ("RSC",), "agent": True, "checkpoint_interval": 2}


def killed(role: str = "launcher", kind: str = "kill", **trigger: Any) -> dict[str, Any]:
    return {"kind": kind, "target": {"role": role}, "trigger": trigger or {"elapsed": 1.0}}


def test_a_killed_launcher_leaves_the_ranks_alone(plan: Planner) -> None:
    found = plan(killed(), job=AGENT, expect={"mechanism": "none"})
    (fault,) = found.faults
    assert (found.response.mechanism, fault.role, fault.ranks, fault.effect) == (None, "launcher", (), NONE)
    assert "so they train on, but nothing would restart a lost rank" in " ".join(found.explanation.reasons)
    assert "kill on the launcher" in render(found)
    assert loads(dumps(found)) == found


@pytest.mark.parametrize(
    ("job", "fault", "reason"),
    [
        ({"protection": ()}, killed(), "the launcher has ended when it has started the ranks"),
        ({"protection": ("TTP", "ARF"), "agent": True}, killed(), "the SDK's controller lives in the launcher"),
        (AGENT, killed("scheduler"), "the ranks train on for about 22 s"),
        (AGENT, killed(step=5), "no rank is held for it at a step"),
        (AGENT, killed(kind="stop"), "can be hit by the fault kind kill only"),
    ],
)
def test_where_nothing_could_be_judged_it_is_refused(
    plan: Planner, job: dict[str, Any], fault: dict[str, Any], reason: str
) -> None:
    assert reason in plan.refused(fault, job=job)


def test_a_recovery_beside_it_is_not_planned(plan: Planner) -> None:
    kill = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 5}}
    assert "after which nothing restarts a rank" in plan.refused(killed(), kill, job=AGENT)


def test_the_controller_is_a_target_too_and_lives_in_a_rank(plan: Planner) -> None:
    (fault,) = plan(killed("controller", step=5), expect={"checkpoint": "none"}).faults
    assert (fault.ranks, fault.role) == ((0,), None)
