"""The end of a job of torchft without its lighthouse: each defect fails for its reason, missing evidence is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.mechanisms.ft.rule import RULE
from chaos.plan.job_effect import STRANDING
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Budget
from tests.kit.plans import plan_named
from tests.unit.checks.mechanism.test_ft_rule import RANKS, train
from tests.unit.checks.mechanism.test_rsc_rule import Story

AT = 10.2
"""When the lighthouse is killed, in seconds, behind step 6. Every group gives up 10 s later."""

LANDED = AT + 0.1

_PLAN = plan_named(
    "ft",
    ranks=RANKS,
    replica_groups=((0, 1, 2),),
    faults=(PlannedFault("end", "kill", (), {"elapsed": 1.0}, {}, None, 3, STRANDING, "lighthouse"),),
    mechanism="none",
    protection=("FT",),
    budget=Budget(50.0, {}),
)
PLAN = replace(_PLAN, training=replace(_PLAN.training, last_step=12))


def good() -> Story:
    story = Story()
    for rank in range(RANKS):
        story.add(1.0, "agent.start", rank, 100 + rank)
        for step in range(1, 7):
            train(story, rank, 100 + rank, step)
        story.add(LANDED + 10, "error.uncaught", rank, 100 + rank, error="TimeoutError: status", base="TimeoutError")
        story.add(LANDED + 12, "rank.exit", rank, 100 + rank, signal=None, code=1)
    story.add(AT, "fault.injecting", None, 60, fault="end", kind="kill")
    story.add(LANDED, "fault.landed", fault="end")
    return story


def spoilt(story: Story, tmp_path: Path) -> list[tuple[str, str]]:
    collector = Collector("mechanism")
    assert RULE.judge_launch is not None
    RULE.judge_launch(PLAN, story.history(), Artifacts(tmp_path, None), collector)
    return [(finding.verdict, finding.seen) for finding in collector.findings() if finding.verdict != "pass"]


def test_groups_that_give_up_by_the_timeout_pass(tmp_path: Path) -> None:
    assert spoilt(good(), tmp_path) == []


def test_a_step_whose_quorum_was_there_may_be_committed(tmp_path: Path) -> None:
    story = good()
    for rank in range(RANKS):
        commit(story, rank, 7, LANDED + 0.2)
    assert spoilt(story, tmp_path) == []


def commit(story: Story, rank: int, step: int, at: float) -> None:
    train(story, rank, 100 + rank, step, participants=3)
    story.events[-4:] = [replace(fact, mono=int(at * 1e9) + number) for number, fact in enumerate(story.events[-4:])]


def goes_on(story: Story) -> None:
    for rank in range(RANKS):
        commit(story, rank, 7, LANDED + 0.2)
        commit(story, rank, 8, LANDED + 0.4)


def started_again(story: Story) -> None:
    story.add(LANDED + 13, "agent.start", 1, 201)


def ends_well(story: Story) -> None:
    story.change("rank.exit", 1, code=0)


def another_error(story: Story) -> None:
    story.change("error.uncaught", 1, error="AssertionError: ", base="AssertionError")


def late(story: Story) -> None:
    story.drop("rank.exit", rank=1)
    story.add(LANDED + 51, "rank.exit", 1, 101, signal=None, code=1)


def killed(story: Story) -> None:
    story.change("rank.exit", 1, signal=9, code=None)


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (goes_on, "steps 7, 8 were committed after its end"),
        (started_again, "rank 1 was started again"),
        (ends_well, "rank 1 exit code 0, not by an error of its own"),
        (killed, "rank 1 ended by SIGKILL, not by an error of its own"),
        (another_error, "rank 1 ended by AssertionError: "),
        (late, "rank 1 ended 51.0 s after the lighthouse, and 50 s are given"),
    ],
)
def test_each_defect_fails_for_its_reason(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = good()
    spoil(story)
    assert [text for verdict, text in spoilt(story, tmp_path) if verdict == "fail"] == [seen]


@pytest.mark.parametrize(
    ("event", "match", "seen"),
    [
        ("fault.landed", {}, "nothing shows that fault end has ended the lighthouse"),
        ("rank.exit", {"rank": 1}, "how rank 1 ended is not recorded"),
        ("error.uncaught", {"rank": 1}, "rank 1 exit code 1, and no error of it is recorded"),
        ("step.voted", {}, "no vote of any group is recorded"),
        ("step.voted", {"step": 4}, "no commit of step 4 is recorded"),
    ],
)
def test_missing_evidence_is_unknown(tmp_path: Path, event: str, match: dict[str, Any], seen: str) -> None:
    story = good()
    story.drop(event, **match)
    statements = spoilt(story, tmp_path)
    assert ("unknown", seen) in statements
    assert {verdict for verdict, _ in statements} == {"unknown"}


def test_a_late_end_on_a_busy_machine_is_unknown(tmp_path: Path) -> None:
    story = good()
    late(story)
    story.add(LANDED + 20, "job.starved", seconds=5.0)
    (statement,) = spoilt(story, tmp_path)
    assert statement[0] == "unknown"
    assert "kept the job waiting for a processor for 5.0 s" in statement[1]
