"""SIGTERM to a rank: what the plan makes of it depends on whether an SDK processor is in the rank."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.plan.conftest import Planner

TERMINATE: dict[str, Any] = {"kind": "terminate", "target": {"rank": 2}, "trigger": {"step": 5}}


@pytest.mark.parametrize("mechanism", ["TTP", "UCE", "HCCE"])
def test_under_the_sdk_nothing_has_to_act(plan: Planner, mechanism: str) -> None:
    made = plan(TERMINATE, job={"steps": 10, "protection": [mechanism]})
    assert (made.response.mechanism, made.checkpoint, made.resume.resumes) == (None, None, False)
    assert "No fault takes a rank from the job, so no mechanism has to act." in made.explanation.reasons


@pytest.mark.parametrize("protection", [[], ["TRE"]])
def test_without_it_the_rank_is_lost(plan: Planner, protection: list[str]) -> None:
    made = plan(TERMINATE, job={"steps": 10, "protection": protection})
    assert (made.response.mechanism, made.checkpoint) == ("none", None)


def test_the_ranks_of_a_kill_beside_it_are_lost_alone(plan: Planner) -> None:
    kill = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 7}}
    made = plan(TERMINATE, kill)
    assert made.response.mechanism == "TTP" and made.checkpoint is not None
    assert made.checkpoint.entitled == {0: (0, 2, 3)}
