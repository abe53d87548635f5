"""A restart by torchrun meets a damaged checkpoint: it was there, and no rank goes on from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.resume.damage_met import EXPECTED, UNDAMAGED, judge_met_within
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import DAMAGE_MET
from chaos.evidence.collect import Collector
from chaos.evidence.recovery_windows import recovery_windows
from chaos.faults.checkpoints.proof_damage import damage_doubts
from chaos.mechanisms.all_ranks_state import judge_checkpoint
from chaos.mechanisms.case import Case
from chaos.plan.job_effect import DAMAGED, DEATH
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import plan_named
from tests.unit.checks.mechanism.test_rsc_rule import Story

HIT = PlannedFault("damage", "flip-checkpoint", (0,), {"step": 9, "phase": "forward"}, {}, None, 3, DAMAGED)
KILL = PlannedFault("kill", "kill", (1,), {"step": 10, "phase": "forward"}, {}, None, 4, DEATH)
PLAN = plan_named(
    "elastic",
    ranks=2,
    replica_groups=((0, 1),),
    faults=(HIT, KILL),
    mechanism="ELASTIC",
    checkpoint_interval=4,
    protection=("ELASTIC",),
    recoveries=(
        Recovery("ELASTIC", ("kill",), 4, restarted=(0, 1), reads_checkpoint=True, trained_again=5, damaged={0: 8}),
    ),
)
OLDER, FILE = "checkpoints/step-4.pt", "checkpoints/step-8.pt"
BEFORE, AFTER = "a" * 64, "b" * 64
AT = 10.0
"""When rank 1 is killed, in seconds."""


def good() -> Story:
    """Rank 0 has saved steps 4 and 8; that of step 8 is damaged, and both new processes go on from that of step 4."""
    story = Story()
    for step, file, at in ((4, OLDER, 4.0), (8, FILE, 8.0)):
        story.add(at, "checkpoint.end", 0, 100, kind="periodic", step=step, path=file)
    story.add(9.0, "fault.injecting", 0, 100, fault="damage", kind=HIT.kind)
    shown = {"rank": 0, "file": FILE, "step": 8, "before": BEFORE, "after": AFTER}
    story.add(9.1, "fault.landed", fault="damage", kind=HIT.kind, ranks=[0], evidence=[shown])
    story.add(AT, "fault.injecting", 1, 101, fault="kill", kind="kill")
    story.add(10.9, DAMAGE_MET, 0, fault="damage", file=FILE, content=AFTER)
    for rank in (0, 1):
        story.add(11.0, "agent.start", rank, 200 + rank)
        load(story, rank, OLDER, 13.0)
        story.add(14.0, "step.begin", rank, 200 + rank, step=5)
        story.add(14.1, "step.end", rank, 200 + rank, step=5)
    story.add(18.0, "checkpoint.end", 0, 200, kind="periodic", step=8, path=FILE)  # saved anew
    return story


def load(story: Story, rank: int, path: str, at: float, *, ends: bool = True) -> None:
    story.add(at, "load.begin", rank, 200 + rank, path=path)
    if ends:
        story.add(at + 0.1, "load.end", rank, 200 + rank, path=path)


def said(story: Story, tmp_path: Path) -> list[tuple[str, str, str]]:
    """Verdict, expectation and observation of both checks."""
    history, artifacts = story.history(), Artifacts(tmp_path, None)
    windows = recovery_windows(PLAN, history)
    resume, mechanism = Collector("resume"), Collector("mechanism")
    judge_met_within(PLAN, history, artifacts, windows, resume)
    (window,) = windows
    assert window.recovery is not None
    new = {event.rank: event for event in history.select("agent.start") if event.rank is not None}
    judge_checkpoint(Case(PLAN, window, window.recovery, history, artifacts, mechanism), new)
    findings = [*resume.findings(), *mechanism.findings()]
    return [(finding.verdict, finding.expected, finding.seen) for finding in findings]


def wrong(story: Story, tmp_path: Path) -> set[tuple[str, str]]:
    return {(verdict, expected) for verdict, expected, _ in said(story, tmp_path) if verdict != "pass"}


READS = "the last finished periodic checkpoint, of step 8, is damaged, and every rank reads one"


def test_a_script_that_passes_the_damaged_file_over_passes(tmp_path: Path) -> None:
    findings = said(good(), tmp_path)
    assert [verdict for verdict, _, _ in findings] == ["pass"] * 3, findings
    assert {expected for _, expected, _ in findings} == {EXPECTED, UNDAMAGED, READS}


def test_a_damaged_file_that_was_tried_and_given_up_is_no_failure(tmp_path: Path) -> None:
    story = good()
    for rank in (0, 1):
        load(story, rank, FILE, 12.0, ends=False)
    assert wrong(story, tmp_path) == set()


def test_a_damaged_file_that_was_looked_at_and_left_is_no_failure(tmp_path: Path) -> None:
    story = good()
    for rank in (0, 1):
        load(story, rank, FILE, 12.0)
    assert wrong(story, tmp_path) == set()


def goes_on_from_damage(story: Story) -> None:
    for event in ("load.begin", "load.end"):
        story.change(event, 1, path=FILE)


def not_looked(story: Story) -> None:
    story.drop(DAMAGE_MET)


def looked_too_early(story: Story) -> None:
    story.drop(DAMAGE_MET)
    story.add(AT - 0.1, DAMAGE_MET, 0, fault="damage", file=FILE, content=AFTER)


def another_there(story: Story) -> None:
    story.change(DAMAGE_MET, 0, content=BEFORE)


def never_damaged(story: Story) -> None:
    story.drop("fault.landed")


def no_older_save(story: Story) -> None:
    story.drop("checkpoint.end", step=4)


def saved_since(story: Story) -> None:
    story.add(9.5, "checkpoint.end", 0, 100, kind="periodic", step=9, path="checkpoints/step-9.pt")


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (goes_on_from_damage, {("fail", UNDAMAGED)}),
        (not_looked, {("unknown", EXPECTED)}),
        (looked_too_early, {("unknown", EXPECTED)}),
        (another_there, {("unknown", EXPECTED)}),
        (never_damaged, {("unknown", EXPECTED)}),
        (no_older_save, {("unknown", READS)}),
        (saved_since, {("fail", READS)}),
    ],
)
def test_each_defect_is_said_for_its_reason(
    tmp_path: Path, spoil: Callable[[Story], None], expected: set[tuple[str, str]]
) -> None:
    story = good()
    spoil(story)
    assert wrong(story, tmp_path) == expected


def test_a_file_that_is_saved_anew_is_no_damaged_one(tmp_path: Path) -> None:
    """A script may look at its checkpoints in the course of its training."""
    story = good()
    load(story, 1, FILE, 19.0)
    assert wrong(story, tmp_path) == set()


def stale(story: Story) -> None:
    """Under the name of step 8 lies the file of step 4, byte for byte."""
    story.change("fault.landed", None, evidence=[evidence(older=OLDER)])  # type: ignore[arg-type]
    for rank in (0, 1):
        for event in ("load.begin", "load.end"):
            story.change(event, rank, path=FILE)


def evidence(**more: Any) -> dict[str, Any]:
    return {"rank": 0, "file": FILE, "step": 8, "before": BEFORE, "after": AFTER, **more}


def test_a_stale_file_is_the_older_checkpoint_for_who_loads_it(tmp_path: Path) -> None:
    story = good()
    stale(story)
    assert wrong(story, tmp_path) == set()


@pytest.mark.parametrize(
    ("shown", "doubt"),
    [
        ({}, None),
        ({"step": 4}, "rank 0's file of step 4 was hit, not that of step 8"),
        ({"after": BEFORE}, "has the same content as before"),
        ({"before": None}, "the digests of rank 0's file before and after are not in the evidence"),
    ],
)
def test_the_damage_is_proven_by_the_file_of_the_planned_step(shown: dict[str, Any], doubt: str | None) -> None:
    story = good()
    history = story.history()
    (landing,) = history.select("fault.landed")
    texts = [text for text, _ in damage_doubts(PLAN, history, HIT, landing, evidence(**shown))]
    assert texts == [] if doubt is None else any(doubt in text for text in texts)
