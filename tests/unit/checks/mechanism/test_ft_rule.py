"""The rule of FT: a group that is not healed, and a step by too few groups, fail; missing evidence is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.consistency.check import check as consistency
from chaos.checks.resume.rejoined import judge_rejoined
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.evidence.recovery_windows import recovery_windows
from chaos.evidence.timestamp import Timestamp
from chaos.mechanisms.case import Case
from chaos.mechanisms.ft.compared import judge_recorded
from chaos.mechanisms.ft.moved import judge_moved
from chaos.mechanisms.ft.phases import phase_ends
from chaos.mechanisms.ft.rule import RULE
from chaos.mechanisms.processes import judge_processes
from chaos.plan.job_effect import DEATH
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import plan_named
from tests.unit.checks.mechanism.test_rsc_rule import LAUNCHER, Story

RANKS, LOST, LAST = 3, 1, 12
AT = 10.0
"""When group 1 is killed, in seconds, behind step 6. It gets the state of step 8, and contributes from step 10 on."""

_PLAN = plan_named(
    "ft",
    ranks=RANKS,
    replica_groups=((0, 1, 2),),
    faults=(PlannedFault("death", "kill", (LOST,), {"step": 6}, {}, None, 3, DEATH),),
    mechanism="FT",
    protection=("FT",),
    recoveries=(Recovery("FT", ("death",), 6, restarted=(LOST,), copied=(LOST,)),),
)
PLAN = replace(_PLAN, training=replace(_PLAN.training, last_step=LAST))


def when(step: int) -> float:
    """Return when a step is committed: the groups stand still for 5 s behind step 6."""
    return AT - 6 + step if step <= 6 else AT + 5 + (step - 7)


def state(step: int) -> dict[str, str]:
    return {"weight": f"w{step}", "optimizer.exp_avg.0": f"m{step}"}


def train(story: Story, rank: int, pid: int, step: int, **vote: Any) -> None:
    at = when(step) + 0.01 * rank
    took_part = 2 if 7 <= step <= 9 else 3
    its = {"committed": True, "participants": took_part, "least": 2, "contributes": True, "healed": False, **vote}
    story.add(at, "step.voted", rank, pid, step=step, **its)
    if its["healed"]:
        story.add(at + 0.001, "train.begin", rank, pid, initial_step=step - 1)
        story.add(at + 0.002, "initial", rank, pid, parameters=state(step - 1))
    story.add(at + 0.003, "step.begin", rank, pid, step=step)
    story.add(at + 0.004, "step.end", rank, pid, step=step)
    story.add(at + 0.005, "digest", rank, pid, step=step, parameters=state(step))


def good() -> Story:
    """Group 1 is killed behind step 6 and started again; the others commit steps 7 and 8 without it."""
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
        story.add(AT + 0.1 if rank == LOST else 40.0, "rank.exit", rank, pid, code=0)
    story.add(AT + 0.3, "agent.start", LOST, 201)
    story.add(AT + 0.4, "rank.found", LOST, 201, ppid=LAUNCHER)
    story.add(AT + 6.0, "group.ready", LOST, 201)
    train(story, LOST, 201, 9, healed=True, contributes=False)
    for step in range(10, LAST + 1):
        train(story, LOST, 201, step)
    story.add(40.0, "rank.exit", LOST, 201, code=0)
    story.add(AT, "fault.injecting", LOST, 101, fault="death", kind="kill")
    return story


def judged(story: Story, tmp_path: Path) -> list[Finding]:
    history, collector = story.history(), Collector("mechanism")
    artifacts = Artifacts(tmp_path, None)
    (window,) = recovery_windows(PLAN, history)
    assert window.recovery is not None
    judge_processes(PLAN, history, collector)
    RULE.judge(Case(PLAN, window, window.recovery, history, artifacts, collector))
    assert RULE.judge_launch is not None
    RULE.judge_launch(PLAN, history, artifacts, collector)
    judge_rejoined(PLAN, history, collector)
    return [*collector.findings(), *consistency(PLAN, history, artifacts)]


def spoilt(story: Story, tmp_path: Path) -> list[tuple[str, str]]:
    return [(finding.verdict, finding.seen) for finding in judged(story, tmp_path) if finding.verdict != "pass"]


def test_a_good_return_passes_and_the_dropped_batches_are_stated(tmp_path: Path) -> None:
    assert spoilt(good(), tmp_path) == []
    seen = {finding.seen for finding in judged(good(), tmp_path)}
    assert "2 of 3 groups in step 7-9; 3 of 36 batches of groups dropped; at most 5.000 s between two of them" in seen


def not_healed(story: Story) -> None:
    story.change("step.voted", LOST, 6, healed=False)
    story.drop("train.begin", pid=201)
    story.drop("initial", pid=201)


def other_state(story: Story) -> None:
    story.change("initial", LOST, 1, parameters={**state(8), "weight": "w0"})


def altered_later(story: Story) -> None:
    story.change("digest", LOST, 8, parameters={**state(11), "weight": "x"})


def too_few(story: Story) -> None:
    for rank in (0, 2):
        story.change("step.voted", rank, 6, least=3)


def miscounted(story: Story) -> None:
    story.change("step.voted", 0, 7, participants=1, least=1)


def step_left_out(story: Story) -> None:
    story.drop("step.end", rank=0, step=8)


def stale_step(story: Story) -> None:
    story.change("train.begin", LOST, 1, initial_step=7)


def other_replaced(story: Story) -> None:
    story.add(AT + 0.3, "agent.start", 2, 202)


def begun_anew(story: Story) -> None:
    """Let group 2 lose its process and its state in step 7, as group 1 does, and train all steps again."""
    for event in ("step.voted", "step.begin", "step.end", "digest"):
        for step in range(7, LAST + 1):
            story.drop(event, pid=102, step=step)
    for step in range(1, LAST + 1):
        train(story, 2, 202, step)
        story.events[-5:] = [replace(fact, mono=fact.mono + 20_000_000_000) for fact in story.events[-5:]]


def left_out_for_good(story: Story) -> None:
    """Let group 1 commit every step since it is back, and contribute to none."""
    for step in range(10, LAST + 1):
        story.change("step.voted", LOST, step - 3, contributes=False)
        for rank in range(RANKS):
            story.change("step.voted", rank, step - (3 if rank == LOST else 1), participants=2)


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (left_out_for_good, "step 12 was trained by 2 of 3 groups, not by rank 1"),
        (begun_anew, "rank 2 committed step 1 again, so what was trained since then is lost"),
        (begun_anew, "rank 2 trained steps in 2 processes, where the plan has 1"),
        (not_healed, "rank 1, started again, committed step 9 without a state from another"),
        (other_state, "rank 1 went on after step 8 with another state than rank 0: 1 of 2 differ: weight"),
        (altered_later, "ranks 0 and 1 disagree after step 11 of attempt train: weight"),
        (too_few, "rank 0 committed step 7 with 2 participants, and min_replica_size is 3"),
        (miscounted, "rank 0 counts 1 participants in step 8; 2 contributed"),
        (step_left_out, "rank 0 trained step 9 after step 7"),
        (stale_step, "rank 1 has the state of step 7, and trained step 9 first"),
        (other_replaced, "rank 2 was replaced: processes 102, 202"),
    ],
)
def test_each_defect_fails_for_its_reason(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = good()
    spoil(story)
    assert ("fail", seen) in spoilt(story, tmp_path)


@pytest.mark.parametrize(
    ("event", "match", "seen"),
    [
        ("step.voted", {"pid": 102}, "no step that rank 2's process has committed after the fault"),
        ("initial", {"pid": 201}, "no state of rank 1's new process is recorded"),
        ("digest", {"step": 8}, "no digests of rank 1 and of another group after step 8 to compare"),
        ("digest", {"step": 12}, "no digests to compare"),
        ("digest", {"step": 10}, "no state of rank 0 after step 10 is recorded"),
        ("digest", {"step": 10, "rank": 2}, "no state of rank 2 after step 10 is recorded"),
        ("digest", {"step": 5, "rank": 1}, "no state of rank 1 after step 5 is recorded"),
        ("digest", {}, "rank 2 after step 1-12 is recorded"),
        ("step.voted", {}, "no state after a committed step is recorded"),
        ("step.voted", {}, "no committed step is recorded"),
        ("step.voted", {"step": 8}, "no commit of step 8 is recorded"),
        ("launcher.found", {}, "the launcher was not identified"),
        ("step.end", {"pid": 201}, "steps of 1 processes of rank 1 are recorded, of 2"),
    ],
)
def test_missing_evidence_is_unknown(tmp_path: Path, event: str, match: dict[str, Any], seen: str) -> None:
    story = good()
    story.drop(event, **match)
    statements = spoilt(story, tmp_path)
    assert any(verdict == "unknown" and seen in text for verdict, text in statements), statements


def ends(story: Story) -> dict[str, float | str]:
    found = phase_ends(PLAN, story.history(), int(AT * 1e9))
    return {name: round(end.mono / 1e9 - AT, 2) if isinstance(end, Timestamp) else end for name, end in found}


def test_the_phases_follow_the_group_that_comes_back() -> None:
    expected = {"stand-still": 5.0, "relaunch": 5.0, "import": 6.0, "heal": 7.01, "first step": 7.01}
    assert ends(good()) == expected, "it is started again while the others stand still"


def test_a_phase_without_its_record_is_not_known() -> None:
    story = good()
    story.drop("group.ready", pid=201)
    assert ends(story)["import"] == "a ready store of its own is recorded for 0 of 1 lost groups"
    story.drop("step.voted")
    assert ends(story)["stand-still"] == "no committed step is recorded after it"


def test_a_lost_process_may_end_before_it_can_record_its_last_state(tmp_path: Path) -> None:
    story = good()
    story.drop("digest", rank=LOST, step=6)
    assert spoilt(story, tmp_path) == []


def test_states_are_missed_after_the_steps_that_the_fault_free_run_has_recorded(tmp_path: Path) -> None:
    """Digests may be thin (``job.digest_interval``)."""
    story = good()
    for step in range(1, LAST):
        if step not in (8, 10):  # step 8 is that of the heal
            story.drop("digest", step=step)
    thin = Story()
    for step in (8, 10, LAST):
        thin.add(float(step), "digest", 0, 1, step=step, parameters=state(step))
    artifacts, collector = Artifacts(tmp_path, None), Collector("mechanism")
    artifacts.baseline = thin.history()
    judge_recorded(PLAN, story.history(), artifacts, collector)
    assert [(finding.verdict, finding.seen) for finding in collector.findings()] == [("pass", "8 states")]


def test_a_group_that_is_back_in_the_last_step_may_get_its_state_in_it(tmp_path: Path) -> None:
    story = good()
    left_out_for_good(story)
    story.change("step.voted", LOST, LAST - 3, healed=True)
    story.drop("step.voted", rank=LOST, step=LAST - 1)
    assert ("unknown", "step 12 was trained by 2 of 3 groups, not by rank 1") in spoilt(story, tmp_path)


def beside(story: Story, fault_free: Story, tmp_path: Path) -> list[tuple[str, str]]:
    """Return what the statements about states say of a run with this fault-free run beside it."""
    artifacts, collector = Artifacts(tmp_path, None), Collector("mechanism")
    artifacts.baseline = fault_free.history()
    judge_recorded(PLAN, story.history(), artifacts, collector)
    judge_moved(PLAN, story.history(), artifacts, collector)
    return [(finding.verdict, finding.seen) for finding in collector.findings()]


def fault_free() -> Story:
    story = Story()
    for rank in range(RANKS):
        for step in range(1, LAST + 1):
            story.add(step + 0.1 * rank, "digest", rank, 300 + rank, step=step, parameters=state(step))
    return story


def stand_still(story: Story, last: int, *names: str) -> None:
    """Let these parameters of all groups be in step ``last`` what they were in step 10."""
    for record in story.events:
        if record.event == "digest" and 10 < record.data["step"] <= last:
            record.data["parameters"] = {**state(record.data["step"]), **{name: state(10)[name] for name in names}}


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (("weight", "optimizer.exp_avg.0"), "no weight and no moment"),
        (("weight",), "no weight"),
        (("optimizer.exp_avg.0",), "no moment"),
    ],
)
def test_groups_that_all_stand_still_fail_though_they_agree(tmp_path: Path, names: tuple[str, ...], what: str) -> None:
    story = good()
    stand_still(story, 11, *names)
    assert spoilt(story, tmp_path) == [], "without a fault-free run nothing is known of the steps"
    assert ("fail", f"{what} of rank 2 changed from step 10 to step 11") in beside(story, fault_free(), tmp_path)


def test_a_state_may_stand_still_where_the_fault_free_run_s_does_or_its_update_is_left_out(tmp_path: Path) -> None:
    still, alike = good(), fault_free()
    stand_still(still, 11, *state(10))
    stand_still(alike, 11, *state(10))
    assert [verdict for verdict, _ in beside(still, alike, tmp_path)] == ["pass", "pass"]
    for rank in range(RANKS):
        still.add(when(11), "update.left_out", rank, 201 if rank == LOST else 100 + rank, step=11)
    assert [verdict for verdict, _ in beside(still, fault_free(), tmp_path)] == ["pass", "pass"]


def test_states_without_a_parameter_of_the_fault_free_run_are_unknown(tmp_path: Path) -> None:
    story = good()
    for record in story.events:
        if record.event == "digest" and record.data["step"] > 8:
            del record.data["parameters"]["optimizer.exp_avg.0"]
    assert spoilt(story, tmp_path) == [], "all groups agree"
    text = "the state of rank 0 after step 9 is recorded without optimizer.exp_avg.0"
    assert ("unknown", text) in beside(story, fault_free(), tmp_path)


def test_without_states_beside_each_other_it_is_unknown_whether_steps_change_them(tmp_path: Path) -> None:
    text = "no states after two committed steps are recorded here and in the fault-free run"
    assert ("unknown", text) in beside(good(), Story(), tmp_path)
