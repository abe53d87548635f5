"""Two groups that train on share no batch, unless they do without a fault; what was trained again is stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.history.reader import History
from chaos.mechanisms.ft.batches import APART, judge_batches
from chaos.mechanisms.ft.commits import judge_commits
from tests.unit.checks.mechanism.test_ft_rule import LOST, PLAN, good
from tests.unit.checks.mechanism.test_rsc_rule import Story


def with_batches(story: Story, *, alike: bool = False) -> Story:
    """Give each digest the batch of its group and step; ``alike``: all groups go through the same data."""
    story.events = [
        replace(event, data={**event.data, "batch": f"{0 if alike else event.rank}-{event.data['step']}"})
        if event.event == "digest"
        else event
        for event in story.events
    ]
    return story


def batch(story: Story, rank: int, step: int, **data: object) -> None:
    """Change the last digest of a group's step."""
    index = [
        at
        for at, event in enumerate(story.events)
        if (event.event, event.rank, event.data.get("step")) == ("digest", rank, step)
    ][-1]
    story.events[index] = replace(story.events[index], data={**story.events[index].data, **data})


def judged(story: Story, tmp_path: Path, baseline: History | None = None) -> list[Finding]:
    collector = Collector("mechanism")
    baseline = with_batches(good()).history() if baseline is None else baseline
    judge_batches(PLAN, story.history(), Artifacts(tmp_path, baseline), collector)
    return collector.findings()


def test_batches_of_their_own_pass_and_none_is_trained_again(tmp_path: Path) -> None:
    (finding,) = judged(with_batches(good()), tmp_path)
    assert (finding.verdict, finding.expected) == ("pass", APART)
    assert finding.seen == "2 groups do; of 33 batches of all groups none was trained again"


def test_two_groups_that_train_on_with_one_batch_fail(tmp_path: Path) -> None:
    story = with_batches(good())
    batch(story, 2, 11, batch="0-11")
    (finding,) = judged(story, tmp_path)
    assert (finding.verdict, finding.seen) == ("fail", "ranks 0 and 2 trained the same batch in step 11")


def test_data_of_a_group_that_is_back_is_the_scripts_own_affair_and_stated(tmp_path: Path) -> None:
    story = with_batches(good())
    for step in (10, 11, 12):
        batch(story, LOST, step, batch=f"{LOST}-{step - 9}")
    batch(story, 2, 12, batch="2-8")
    (finding,) = judged(story, tmp_path)
    assert finding.verdict == "pass"
    assert finding.seen == "2 groups do; of 29 batches of all groups 4 were trained again"


def test_a_batch_that_is_not_recorded_is_unknown(tmp_path: Path) -> None:
    story = with_batches(good())
    batch(story, 2, 11, batch=None)
    (finding,) = judged(story, tmp_path)
    assert (finding.verdict, finding.seen) == ("unknown", "the batch of rank 2 in step 11 is not recorded")


def test_groups_that_share_their_data_without_a_fault_are_not_judged(tmp_path: Path) -> None:
    same = with_batches(good(), alike=True)
    assert judged(same, tmp_path, same.history()) == []


def test_a_job_whose_batches_nobody_records_is_not_judged(tmp_path: Path) -> None:
    assert judged(good(), tmp_path, good().history()) == []


def test_a_group_that_gets_its_state_and_counts_in_one_vote_is_unknown(tmp_path: Path) -> None:
    story = good()
    story.change("step.voted", 0, 7, healed=True)
    collector = Collector("mechanism")
    judge_commits(PLAN, story.history(), Artifacts(tmp_path, None), collector)
    seen = "rank 0 got its state in step 8, and by the same vote its own gradients count"
    assert ("unknown", seen) in [(finding.verdict, finding.seen) for finding in collector.findings()]
