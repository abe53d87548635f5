"""The rule of RSC: each defect fails for its reason, and missing evidence is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import background_doubts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.evidence.recovery_windows import recovery_windows
from chaos.evidence.timestamp import Timestamp
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.case import Case
from chaos.mechanisms.processes import judge_processes
from chaos.mechanisms.rsc.phases import phase_ends
from chaos.mechanisms.rsc.rule import judge
from chaos.plan.job_effect import DEATH
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed, plan_named

RANKS = 4
KILLED = 2
LAUNCHER = 50
AT = 10.0
"""When rank 2 is killed, in seconds, at the end of step 7; the checkpoint of step 4 is the last one."""

PLAN = plan_named(
    "rsc",
    ranks=RANKS,
    replica_groups=((0, 1, 2, 3),),
    faults=(PlannedFault("death", "kill", (KILLED,), {"step": 7}, {}, None, 3, DEATH),),
    mechanism="RSC",
    checkpoint_interval=4,
    protection=("RSC",),
    recoveries=(Recovery("RSC", ("death",), 4, restarted=(0, 1, 2, 3), reads_checkpoint=True, trained_again=3),),
)


class Story:
    """Events in order of their times, made and unmade by a test."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, at: float, event: str, rank: int | None = None, pid: int | None = None, **data: Any) -> None:
        where = f"history/x.jsonl:{len(self.events) + 1}"
        mono = int(at * 1e9)
        self.events.append(Event(event, mono, mono, "agent", len(self.events), "train", rank, pid, data, where))

    def drop(self, event: str, **match: Any) -> None:
        self.events = [
            fact
            for fact in self.events
            if fact.event != event or any(getattr(fact, key, fact.data.get(key)) != want for key, want in match.items())
        ]

    def change(self, event: str, rank: int, number: int = 0, **data: Any) -> None:
        index = [at for at, fact in enumerate(self.events) if (fact.event, fact.rank) == (event, rank)][number]
        self.events[index] = replace(self.events[index], data={**self.events[index].data, **data})

    def history(self) -> History:
        return History(tuple(sorted(self.events, key=lambda event: event.mono)))


def path_of(rank: int, step: int) -> str:
    return f"checkpoints/rank_{rank}/net-1_{step}.ckpt"


def good() -> Story:
    story = Story()
    story.add(0.1, "launcher.found", pid=LAUNCHER, role="launcher")
    for rank in range(RANKS):
        for first, start, steps in ((100, 1.0, range(1, 8)), (200, 12.0, range(5, 13))):
            pid = first + rank
            story.add(start, "agent.start", rank, pid)
            story.add(start + 0.1, "rank.found", rank, pid, ppid=LAUNCHER)
            if first == 200:
                for event, at in (("load.begin", 0.9), ("load.end", 1.0)):
                    story.add(start + at, event, rank, pid, path=path_of(rank, 4))
            story.add(start + 2.0, "train.begin", rank, pid)
            for number, step in enumerate(steps):
                story.add(start + 3 + 0.5 * number, "step.begin", rank, pid, step=step)
                story.add(start + 3.4 + 0.5 * number, "step.end", rank, pid, step=step)
                if step == 4 and first == 100:
                    saved: dict[str, Any] = {"kind": "periodic", "step": step, "path": path_of(rank, step)}
                    story.add(start + 3.45 + 0.5 * number, "checkpoint.end", rank, pid, **saved)
        ended = AT + (0.1 if rank == KILLED else 0.5 + 0.1 * rank)
        story.add(ended, "child.exit", None, LAUNCHER, child_pid=100 + rank, child_rank=rank, signal=9, code=None)
        story.add(ended + 0.01, "rank.exit", rank, 100 + rank, signal=9, code=None)
        story.add(30.0, "rank.exit", rank, 200 + rank, signal=None, code=0)
    story.add(AT, "fault.injecting", KILLED, 102, fault="death", kind="kill")
    return story


def judged(story: Story, tmp_path: Path, plan: Plan = PLAN) -> list[Finding]:
    history, found = story.history(), Collector("mechanism")
    (window,) = recovery_windows(plan, history)
    assert window.recovery is not None
    judge(Case(plan, window, window.recovery, history, Artifacts(tmp_path, None), found))
    return found.findings()


def test_a_good_restart_passes(tmp_path: Path) -> None:
    findings = judged(good(), tmp_path)
    assert [finding.verdict for finding in findings] == ["pass"] * 4


def in_background(story: Story, *, but: int | None = None, at: float = 6.0, ok: bool = True) -> Story:
    """The checkpoint of step 4 was written in the background, on every rank but one."""
    for rank in range(RANKS):
        story.change("checkpoint.end", rank, asynchronous=True)
        (end,) = [event for event in story.events if (event.event, event.rank) == ("checkpoint.end", rank)]
        story.add(5.9, "checkpoint.begin", rank, 100 + rank, **end.data)
        if rank != but:
            story.add(at, "checkpoint.written", rank, 100 + rank, ok=ok, **end.data)
    return story


def test_a_checkpoint_that_was_written_in_the_background_is_the_last_when_its_file_was_whole(tmp_path: Path) -> None:
    assert [finding.verdict for finding in judged(in_background(good()), tmp_path)] == ["pass"] * 4
    late = judged(in_background(good(), at=40.0), tmp_path)
    assert [finding.seen for finding in late if finding.verdict == "fail"] == ["none was finished"]
    failed = judged(in_background(good(), ok=False), tmp_path)
    assert [finding.seen for finding in failed if finding.verdict == "fail"] == ["none was finished"]


def test_a_fault_that_comes_into_a_save_in_the_background_is_another_than_the_planned_one() -> None:
    (death,) = PLAN.faults
    assert list(background_doubts(PLAN, good().history(), death)) == []
    assert list(background_doubts(PLAN, in_background(good()).history(), death)) == []
    ((doubt, _),) = background_doubts(PLAN, in_background(good(), but=3).history(), death)
    assert "rank 3 has not recorded that its checkpoint of step 4 was written" in doubt
    failed = [doubt for doubt, _ in background_doubts(PLAN, in_background(good(), ok=False).history(), death)]
    assert len(failed) == RANKS
    assert "rank 0 has recorded that its checkpoint of step 4 could not be written" in failed[0]
    other = changed(PLAN, recoveries=(replace(PLAN.response.recoveries[0], step=0, reads_checkpoint=False),))
    assert list(background_doubts(other, in_background(good(), but=3).history(), death)) == []


def test_a_fault_that_comes_before_a_thread_has_saved_the_planned_step_is_another_than_the_planned_one() -> None:
    (death,) = PLAN.faults
    story = good()
    for rank in range(RANKS):
        story.change("checkpoint.end", rank, late=True)
        (end,) = [event for event in story.events if (event.event, event.rank) == ("checkpoint.end", rank)]
        story.add(5.9, "checkpoint.begin", rank, 100 + rank, **end.data)
    assert list(background_doubts(PLAN, story.history(), death)) == []
    for rank in range(RANKS):
        story.change("checkpoint.end", rank, step=2)
    doubts = [doubt for doubt, _ in background_doubts(PLAN, story.history(), death)]
    assert len(doubts) == RANKS
    assert "rank 0 saves in a thread of its own, and has recorded no end of a save of step 4" in doubts[0]


def test_over_a_broken_link_a_rank_may_give_up_before_the_agent_kills_it(tmp_path: Path) -> None:
    story = good()
    own_death(story)
    assert any("rank 1 was not killed" in finding.seen for finding in judged(story, tmp_path))
    link = replace(PLAN, faults=(replace(PLAN.faults[0], kind="link"),))
    assert [finding.verdict for finding in judged(story, tmp_path, link)] == ["pass"] * 4


def later_checkpoint(story: Story) -> None:
    story.add(AT - 0.1, "checkpoint.end", 0, 100, kind="periodic", step=6)


def own_death(story: Story) -> None:
    story.change("rank.exit", 1, signal=None, code=1)


def other_launcher(story: Story) -> None:
    story.add(AT + 1, "launcher.found", pid=51, role="launcher")


def no_restart(story: Story) -> None:
    story.events = [event for event in story.events if event.pid is None or event.pid < 200]


def early_start(story: Story) -> None:
    story.add(AT + 0.2, "agent.start", 3, 203)


def step_eight(story: Story) -> None:
    story.add(AT - 0.05, "step.end", 0, 100, step=8)


def older_checkpoint(story: Story) -> None:
    """Rank 1 reads what it had saved after step 2, and nothing else."""
    story.add(4.45, "checkpoint.end", 1, 101, kind="periodic", step=2, path=path_of(1, 2))
    for event in ("load.begin", "load.end"):
        story.change(event, 1, path=path_of(1, 2))


def never_finished(story: Story) -> None:
    """Rank 0 begins its save, and no save is finished."""
    story.drop("checkpoint.end")
    story.add(5.9, "checkpoint.begin", 0, 100, kind="periodic", step=4, path=path_of(0, 4))


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (later_checkpoint, "step 6"),
        (own_death, "rank 1 was not killed: exit code 1"),
        (other_launcher, "the launcher was replaced"),
        (no_restart, "no rank was started again in recovery 1"),
        (early_start, "rank 3 was started before rank 3 had ended"),
        (step_eight, "4 were"),
        (older_checkpoint, "rank 1 read no checkpoint of step 4, but of step 2"),
        (lambda story: story.change("rank.found", 0, 1, ppid=1), "is a child of process 1, not of launcher 50"),
        (never_finished, "none was finished"),
    ],
)
def test_each_defect_fails_for_its_reason(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = good()
    spoil(story)
    failed = [finding for finding in judged(story, tmp_path) if finding.verdict == "fail"]
    assert len(failed) == 1, failed
    assert seen in failed[0].seen


@pytest.mark.parametrize(("rank", "failed"), [(0, []), (2, ["4 were, on rank 2"])])
def test_only_a_rank_that_can_have_been_ahead_may_lose_a_step_more(
    tmp_path: Path, rank: int, failed: list[str]
) -> None:
    story = good()
    story.add(AT - 0.05, "step.end", rank, 100 + rank, step=8)
    plan = changed(PLAN, recoveries=(replace(PLAN.response.recoveries[0], one_more=(0, 1)),))
    assert [finding.seen for finding in judged(story, tmp_path, plan) if finding.verdict != "pass"] == failed


def test_steps_that_nobody_has_recorded_are_unknown_where_none_is_to_be_lost(tmp_path: Path) -> None:
    story = good()
    story.drop("step.end")
    plan = changed(PLAN, recoveries=(replace(PLAN.response.recoveries[0], trained_again=0),))
    assert {finding.verdict for finding in judged(story, tmp_path, plan)} == {"pass", "unknown"}


@pytest.mark.parametrize(
    ("event", "match", "seen"),
    [
        ("launcher.found", {}, "the launcher was not identified"),
        ("child.exit", {}, "the launcher reported 0 of 4 ends"),
        ("rank.exit", {"pid": 103}, "how rank 3's process before the restart ended is not recorded"),
        ("load.end", {"rank": 1}, "no load of rank 1 is recorded after the restart"),
        ("load.begin", {"rank": 2}, "no load of rank 2 is recorded after the restart"),
        ("checkpoint.end", {"rank": 3}, f"rank 3 read {path_of(3, 4)}, and no save of it is recorded"),
        ("step.end", {}, "no step before the fault is recorded"),
    ],
)
def test_missing_evidence_is_unknown(tmp_path: Path, event: str, match: dict[str, Any], seen: str) -> None:
    story = good()
    story.drop(event, **match)
    found = [finding for finding in judged(story, tmp_path) if finding.verdict != "pass"]
    assert [finding.verdict for finding in found] == ["unknown"]
    assert seen in found[0].seen


def test_saves_that_nobody_sees_are_unknown(tmp_path: Path) -> None:
    story = good()
    story.drop("checkpoint.end")
    found = [finding for finding in judged(story, tmp_path) if finding.verdict != "pass"]
    assert {finding.verdict for finding in found} == {"unknown"}
    assert "no save of any rank is recorded" in {finding.seen for finding in found}


def test_a_rank_may_look_at_other_checkpoints_too(tmp_path: Path) -> None:
    story = good()
    story.add(4.45, "checkpoint.end", 1, 101, kind="periodic", step=2, path=path_of(1, 2))
    for at, path in ((12.7, path_of(1, 2)), (12.95, "checkpoints/of-nobody.ckpt")):
        story.add(at, "load.begin", 1, 201, path=path)
    assert [finding.verdict for finding in judged(story, tmp_path)] == ["pass"] * 4


def test_without_a_checkpoint_nothing_has_to_be_read(tmp_path: Path) -> None:
    plan = changed(
        PLAN, recoveries=(replace(PLAN.response.recoveries[0], step=0, reads_checkpoint=False, trained_again=7),)
    )
    story = good()
    story.drop("checkpoint.end")
    story.drop("load.end")
    assert {finding.verdict for finding in judged(story, tmp_path, plan)} == {"pass"}


def test_the_phases_follow_one_another(tmp_path: Path) -> None:
    ends = dict(phase_ends(PLAN, good().history(), int(AT * 1e9)))
    times = {name: end.mono / 1e9 - AT for name, end in ends.items() if isinstance(end, Timestamp)}
    assert times == pytest.approx(
        {
            "detection": 0.5,
            "stop": 0.8,
            "relaunch": 2.0,
            "load": 4.0,
            "compile": 5.0,
            "first step": 5.4,
            "caught up": 6.4,
        }
    )


@pytest.mark.parametrize("event", ["child.exit", "agent.start", "train.begin", "step.begin", "step.end"])
def test_a_phase_without_its_events_has_a_reason(event: str) -> None:
    story = good()
    story.drop(event)
    assert any(isinstance(end, str) for _, end in phase_ends(PLAN, story.history(), int(AT * 1e9)))


def test_a_process_that_only_the_launcher_saw_counts(tmp_path: Path) -> None:
    """One that is killed before its agent starts leaves no record of its own, and the harness may not see it."""
    story = good()
    for spoilt, said in ((False, set()), (True, {"rank 1 was replaced: processes 101, 151, 201"})):
        if spoilt:
            story.add(11.0, "child.exit", None, LAUNCHER, child_pid=151, child_rank=1, signal=9, code=None)
        found = Collector("mechanism")
        judge_processes(PLAN, story.history(), found)
        assert {finding.seen for finding in found.findings() if finding.verdict == "fail"} == said


def test_without_a_restart_in_the_plan_such_a_process_counts_too() -> None:
    story, found = good(), Collector("mechanism")
    story.drop("agent.start", pid=201)
    story.drop("rank.found", pid=201)
    story.add(11.0, "child.exit", None, LAUNCHER, child_pid=151, child_rank=1, signal=9, code=None)
    judge_processes(changed(PLAN, recoveries=()), story.history(), found)
    failed = [finding.seen for finding in found.findings() if finding.verdict == "fail"]
    assert "rank 1 was started again in attempt train: processes 101, 151" in failed


def test_processes_of_two_nodes_may_have_the_same_pid(tmp_path: Path) -> None:
    """An early start on one node is not taken for the old process of another."""
    story = good()
    story.add(AT + 0.2, "agent.start", 3, 101)
    assert any(
        "rank 3 was started before" in finding.seen for finding in judged(story, tmp_path) if finding.verdict == "fail"
    )
    lost = good()
    lost.events = [replace(event, pid=101) if event.pid == 203 else event for event in lost.events]
    assert [finding.verdict for finding in judged(lost, tmp_path)] == ["pass"] * 4
