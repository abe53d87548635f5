"""The rule of FT for a group that was stopped for a time: it gets the state of another group in its own process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.timestamp import Timestamp
from chaos.mechanisms.ft.phases import phase_ends
from chaos.mechanisms.ft.rule import RULE
from chaos.plan.job_effect import SUSPENSION
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed
from tests.unit.checks.mechanism import test_ft_rule
from tests.unit.checks.mechanism.test_ft_rule import AT, LAST, LOST, RANKS, judged, state, train
from tests.unit.checks.mechanism.test_rsc_rule import LAUNCHER, Story

PID = 100 + LOST
CONTINUED = AT + 6.5
"""When the harness continues group 1: the others have committed step 8 without it."""

PLAN = changed(
    test_ft_rule.PLAN,
    faults=(PlannedFault("stop", "suspend", (LOST,), {"step": 6}, {"seconds": 6.5}, None, 3, SUSPENSION),),
    recoveries=(Recovery("FT", ("stop",), 6, restarted=(), copied=(LOST,)),),
)


def good() -> Story:
    """Group 1 is stopped behind step 6; continued, it gets the state of step 8 in the same process."""
    story = Story()
    story.add(0.1, "launcher.found", pid=LAUNCHER, role="launcher")
    for rank in range(RANKS):
        pid = 100 + rank
        story.add(1.0, "agent.start", rank, pid)
        story.add(1.1, "rank.found", rank, pid, ppid=LAUNCHER)
        story.add(3.0, "train.begin", rank, pid, initial_step=0)
        story.add(3.1, "initial", rank, pid, parameters=state(0))
        for step in range(1, LAST + 1) if rank != LOST else range(1, 7):
            train(story, rank, pid, step)
        story.add(40.0, "rank.exit", rank, pid, code=0)
    train(story, LOST, PID, 9, healed=True, contributes=False)
    for step in range(10, LAST + 1):
        train(story, LOST, PID, step)
    story.add(AT, "fault.injecting", LOST, PID, fault="stop", kind="suspend")
    story.add(CONTINUED, "fault.healed", fault="stop")
    return story


@pytest.fixture(autouse=True)
def suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge by the plan of a stopped group."""
    monkeypatch.setattr(test_ft_rule, "PLAN", PLAN)


def spoilt(story: Story, tmp_path: Path) -> list[tuple[str, str]]:
    return [(finding.verdict, finding.seen) for finding in judged(story, tmp_path) if finding.verdict != "pass"]


def test_a_good_return_in_the_same_process_passes(tmp_path: Path) -> None:
    assert spoilt(good(), tmp_path) == []


def not_healed(story: Story) -> None:
    story.change("step.voted", LOST, 6, healed=False)


def other_state(story: Story) -> None:
    story.change("initial", LOST, 1, parameters={**state(8), "weight": "w0"})


def stale_step(story: Story) -> None:
    story.change("train.begin", LOST, 1, initial_step=7)


def replaced(story: Story) -> None:
    story.add(CONTINUED, "agent.start", LOST, 201)


def healthy_ones_die(story: Story) -> None:
    """Let all groups end, as torchft 0.2.0 does (F-19), and train from step 1 on again."""
    for event in ("step.voted", "step.begin", "step.end", "digest"):
        for step in range(7, LAST + 1):
            story.drop(event, step=step)
    for rank in range(RANKS):
        story.add(AT + 5.1, "agent.start", rank, 200 + rank)
        for step in range(1, LAST + 1):
            train(story, rank, 200 + rank, step)
            story.events[-4:] = [replace(fact, mono=fact.mono + 20_000_000_000) for fact in story.events[-4:]]


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (not_healed, "rank 1, continued, committed step 9 without a state from another"),
        (other_state, "rank 1 went on after step 8 with another state than rank 0: 1 of 2 differ: weight"),
        (stale_step, "rank 1 trained step 9 after step 6"),
        (replaced, "rank 1 was replaced: processes 101, 201"),
        (healthy_ones_die, "rank 0 was replaced: processes 100, 200"),
        (healthy_ones_die, "rank 0 trained steps in 2 processes, where the plan has 1"),
        (healthy_ones_die, "rank 0 committed step 1 again, so what was trained since then is lost"),
    ],
)
def test_each_defect_fails_for_its_reason(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = good()
    spoil(story)
    assert ("fail", seen) in spoilt(story, tmp_path)


@pytest.mark.parametrize(
    ("event", "match", "seen"),
    [
        ("train.begin", {"rank": LOST, "initial_step": 8}, "no state of rank 1's continued process is recorded"),
        ("train.begin", {"rank": LOST, "initial_step": 8}, "the step of the state with which rank 1 was back"),
        ("step.voted", {"pid": 102}, "no step that rank 2's process has committed after the fault"),
        ("digest", {"step": 8}, "no digests of rank 1 and of another group after step 8 to compare"),
    ],
)
def test_missing_evidence_is_unknown(tmp_path: Path, event: str, match: dict[str, Any], seen: str) -> None:
    story = good()
    story.drop(event, **match)
    statements = spoilt(story, tmp_path)
    assert any(verdict == "unknown" and seen in text for verdict, text in statements), statements
    assert {verdict for verdict, _ in statements} == {"unknown"}


def test_the_phases_follow_the_group_that_is_continued() -> None:
    ends = {
        name: round(end.mono / 1e9 - AT, 2) if isinstance(end, Timestamp) else end
        for name, end in phase_ends(PLAN, good().history(), int(AT * 1e9))
    }
    assert ends == {"stand-still": 5.0, "relaunch": 6.5, "import": 6.5, "heal": 7.01, "first step": 7.01}


def test_a_heal_in_the_same_process_shows_that_ft_acted() -> None:
    assert RULE.acted is not None
    story = good()
    assert RULE.acted(story.history())
    not_healed(story)
    assert not RULE.acted(story.history())
