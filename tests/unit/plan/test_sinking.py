"""What is sunk together has one end that anybody sees: other steps are refused, not waited for in vain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.plan.conftest import Planner

ALONE: dict[str, Any] = {"ranks": 1}


def kill(step: int) -> Any:
    return {"kind": "kill", "target": {"rank": 0}, "trigger": {"step": step}}


def job(size: int = 4, steps: int = 16, interval: int | None = 8) -> dict[str, Any]:
    return {"sink_size": size, "steps": steps, "checkpoint_interval": interval, "protection": ()}


@pytest.mark.parametrize(
    ("step", "given", "words"),
    [
        (15, job(), "step 15 never comes by itself: 4 steps are sunk to the device at once"),
        (8, job(interval=6), "checkpoints are not saved every 6 steps, but at the end of a sink: 4 steps are sunk"),
        (8, job(steps=18), "18 steps are no whole number of sinks, so the last ones are not trained: 4 steps are sunk"),
    ],
)
def test_a_number_of_steps_that_is_no_whole_number_of_sinks_is_refused(
    plan: Planner, step: int, given: dict[str, Any], words: str
) -> None:
    assert words in plan.refused(kill(step), cluster=ALONE, job=given)
    plan(kill(step), cluster=ALONE, job={**given, "sink_size": 1})


def test_a_step_within_other_conditions_is_looked_at_too(plan: Planner) -> None:
    trigger = {"any": [{"step": 8}, {"all": [{"step": 6}, {"elapsed": 1.0}]}]}
    fault = {"kind": "kill", "target": {"rank": 0}, "trigger": trigger}
    assert "step 6 never comes by itself" in plan.refused(fault, cluster=ALONE, job=job())


def test_the_ends_of_sinks_are_planned(plan: Planner) -> None:
    assert plan(kill(12), cluster=ALONE, job=job()).training.sink_size == 4
