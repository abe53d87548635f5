"""A job that its own supervisor starts again: what the plan says, and what it refuses by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

KILL = {"id": "kill", "kind": "kill", "target": {"rank": 1}, "trigger": {"step": 6, "phase": "forward"}}
JOB = {"command": ["go"], "supervised": True, "protection": (), "checkpoint_interval": 4}
NONE = {"mechanism": "none"}


@pytest.fixture
def own(plan: Planner) -> Planner:
    plan.traits = replace(plan.traits, own_launcher=True, any_replica=True)
    return plan


def test_the_plan_goes_on_from_the_newest_checkpoint_and_says_who_starts_the_ranks(own: Planner) -> None:
    planned = own(KILL, job=JOB, expect=NONE)
    assert (planned.resume.resumes, planned.resume.resume_step) == (True, 5)
    assert "The job's own supervisor starts the ranks again" in " ".join(planned.explanation.reasons)


@pytest.mark.parametrize(
    ("job", "more", "text"),
    [
        ({"protection": ("TTP",)}, {}, "a supervisor beside mechanisms is not planned by this version"),
        ({"resume_arguments": ("--resume",)}, {}, "the supervisor starts the ranks again, with arguments of its own"),
        ({}, {"cluster": {"ranks": 4, "nodes": 2}}, "a supervisor on each of several nodes is not planned"),
        ({"resume": False}, {}, "the scenario says that the job just ends, and a supervisor starts it again"),
        ({"checkpoint_interval": None}, {}, "the plan has no resume that could be judged"),
    ],
)
def test_what_cannot_be_judged_is_refused(own: Planner, job: dict[str, Any], more: dict[str, Any], text: str) -> None:
    own.lines = {"job.supervised": 5, "job.resume_arguments": 6}
    assert text in own.refused(KILL, job={**JOB, **job}, expect=NONE, **more)


def test_without_faults_nothing_is_started_again(own: Planner) -> None:
    assert not own(job=JOB).resume.resumes
