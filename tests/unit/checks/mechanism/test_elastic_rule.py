"""The rule of ELASTIC: each defect fails for its reason, and missing evidence is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.evidence.recovery_windows import recovery_windows
from chaos.evidence.timestamp import Timestamp
from chaos.mechanisms.case import Case
from chaos.mechanisms.elastic.phases import phase_ends
from chaos.mechanisms.elastic.progress import judge_progress
from chaos.mechanisms.elastic.rule import RULE, judge
from chaos.plan.job_effect import DEATH
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.plans import changed, plan_named
from tests.unit.checks.mechanism.test_rsc_rule import AT, KILLED, LAUNCHER, RANKS, Story

PLAN = plan_named(
    "elastic",
    ranks=RANKS,
    replica_groups=((0, 1, 2, 3),),
    faults=(PlannedFault("death", "kill", (KILLED,), {"step": 7}, {}, None, 3, DEATH),),
    mechanism="ELASTIC",
    checkpoint_interval=4,
    protection=("ELASTIC",),
    recoveries=(Recovery("ELASTIC", ("death",), 4, restarted=(0, 1, 2, 3), reads_checkpoint=True, trained_again=2),),
)
FILE = "checkpoints/step-4.pt"


def process(story: Story, rank: int, pid: int, start: float, steps: range) -> None:
    """One process of a rank: it goes on from the checkpoint if it does not begin with step 1; rank 0 saves step 4."""
    story.add(start, "agent.start", rank, pid)
    story.add(start + 0.1, "rank.found", rank, pid, ppid=LAUNCHER)
    story.add(start + 1.5 + 0.1 * rank, "group.ready", rank, pid)
    if steps.start > 1:
        for event, at in (("load.begin", 1.9), ("load.end", 2.0)):
            story.add(start + at, event, rank, pid, path=FILE)
    story.add(start + 2.5, "train.begin", rank, pid)
    for number, step in enumerate(steps):
        story.add(start + 3 + 0.5 * number, "step.begin", rank, pid, step=step)
        story.add(start + 3.4 + 0.5 * number, "step.end", rank, pid, step=step)
        if step == 4 and rank == 0:
            story.add(start + 3.45 + 0.5 * number, "checkpoint.end", rank, pid, kind="periodic", step=4, path=FILE)


def ended(story: Story, rank: int, pid: int, at: float, *, signal: int | None = None, code: int | None = None) -> None:
    story.add(at, "child.exit", None, LAUNCHER, child_pid=pid, child_rank=rank, signal=signal, code=code)
    story.add(at + 0.01, "rank.exit", rank, pid, signal=signal, code=code)


def good() -> Story:
    """Rank 2 is killed in step 7; the others end by SIGTERM; the new processes train to step 12."""
    story = Story()
    story.add(0.1, "launcher.found", pid=LAUNCHER, role="launcher")
    for rank in range(RANKS):
        process(story, rank, 100 + rank, 1.0, range(1, 7))
        story.add(AT - 0.1, "step.begin", rank, 100 + rank, step=7)
        if rank == KILLED:
            ended(story, rank, 100 + rank, AT + 0.05, signal=9)
        else:
            ended(story, rank, 100 + rank, AT + 0.2 + 0.01 * rank, signal=15)
        process(story, rank, 200 + rank, 11.0 + 0.1 * rank, range(5, 13))
        ended(story, rank, 200 + rank, 30.0, code=0)
    story.add(AT, "fault.injecting", KILLED, 102, fault="death", kind="kill")
    return story


def judged(story: Story, tmp_path: Path, plan: Plan = PLAN) -> list[Finding]:
    history, collector = story.history(), Collector("mechanism")
    artifacts = Artifacts(tmp_path, None)
    (window, *_) = recovery_windows(plan, history)
    assert window.recovery is not None
    judge(Case(plan, window, window.recovery, history, artifacts, collector))
    judge_progress(plan, history, artifacts, collector)
    return collector.findings()


def spoilt(story: Story, tmp_path: Path, plan: Plan = PLAN) -> list[tuple[str, str]]:
    return [(finding.verdict, finding.seen) for finding in judged(story, tmp_path, plan) if finding.verdict != "pass"]


def test_a_good_restart_passes(tmp_path: Path) -> None:
    findings = judged(good(), tmp_path)
    assert [finding.verdict for finding in findings] == ["pass"] * 6
    assert any(finding.seen == "3 ended by SIGTERM" for finding in findings)


def new_end(story: Story, rank: int, **how: Any) -> None:
    """Give the process before the restart another end."""
    story.drop("rank.exit", pid=100 + rank)
    at = how.pop("at", AT + 0.22)
    story.add(at, "rank.exit", rank, 100 + rank, **{"signal": None, "code": None, **how})


GLOO = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:2"


def raises(story: Story, text: str, base: str = "RuntimeError", rank: int = 1, **chain: Any) -> None:
    story.add(AT + 0.1, "error.uncaught", rank, 100 + rank, error=text, base=base, **chain)


def own_error(story: Story, rank: int = 1) -> None:
    new_end(story, rank, code=1)
    raises(story, GLOO, rank=rank)


def crash_behind_error(story: Story) -> None:
    own_error(story)
    new_end(story, 1, signal=11)


def stopped(story: Story) -> None:
    new_end(story, 1, signal=9, at=AT + 30.2)
    for event in ("agent.start", "rank.found", "load.begin", "load.end"):
        for rank in range(RANKS):
            story.drop(event, pid=200 + rank)
    for rank in range(RANKS):
        process(story, rank, 200 + rank, 42.0, range(5, 13))


@pytest.mark.parametrize("spoil", [own_error, stopped])
def test_a_rank_may_end_by_an_error_of_its_own_or_when_torchruns_patience_has_ended(
    tmp_path: Path, spoil: Callable[[Story], None]
) -> None:
    story = good()
    spoil(story)
    assert spoilt(story, tmp_path) == []


def log(tmp_path: Path, *lines: str) -> None:
    """Write the log of the launcher, process 50."""
    path = tmp_path / "logs" / "train" / "msrun.log"
    path.parent.mkdir(parents=True)
    prefix = "W1128 02:57:50.305000 50 torch/distributed/elastic/multiprocessing/api.py:1028] "
    path.write_text("".join(f"{prefix}{line}\n" for line in lines))


@pytest.mark.parametrize("code", [0, 143])
def test_a_script_may_catch_the_sigterm_that_torchrun_says_it_has_sent(tmp_path: Path, code: int) -> None:
    story = good()
    new_end(story, 1, code=code)
    log(tmp_path, "Sending process 101 closing signal SIGTERM")
    assert spoilt(story, tmp_path) == []
    assert any("2 ended by SIGTERM" in finding.seen and finding.by_log for finding in judged(story, tmp_path))
    new_end(story, 1, signal=11)
    why = "rank 1: ended by SIGSEGV after torchrun's SIGTERM, and nothing shows why"
    assert spoilt(story, tmp_path) == [("unknown", why)]


def test_torchrun_may_lose_its_patience_sooner_by_its_own_word(tmp_path: Path) -> None:
    story = good()
    new_end(story, 1, signal=9, at=AT + 0.25)
    log(tmp_path, "Unable to shutdown process 101 via 15, forcefully exiting via 9")
    assert spoilt(story, tmp_path) == []
    new_end(story, 3, signal=9, at=AT + 0.25)
    assert [verdict for verdict, _ in spoilt(story, tmp_path)] == ["fail"]


@pytest.mark.parametrize(
    ("rank", "seen"),
    [
        (KILLED, "torchrun names process 102 (local rank 2, ended by SIGKILL), which was hit first"),
        (1, "torchrun names process 101 (local rank 1, ended by SIGTERM); process 102 of rank 2 was hit first"),
        (3, None),
    ],
)
def test_the_root_cause_that_torchrun_names_is_stated_and_fails_nothing(
    tmp_path: Path, rank: int, seen: str | None
) -> None:
    signal = -9 if rank == KILLED else -15
    failed = f"failed (exitcode: {signal}) local_rank: {rank} (pid: {100 + rank}) of binary: /usr/bin/python"
    other = failed.replace("(pid: 103)", "(pid: 999)")  # of no process before the restart
    log(tmp_path, "Sending process 101 closing signal SIGTERM", other)
    findings = [finding for finding in judged(good(), tmp_path) if "root cause" in finding.expected]
    assert {finding.verdict for finding in findings} <= {"pass"}
    assert [finding.seen.partition(", and torchrun had sent")[0] for finding in findings] == (
        [] if seen is None else [seen]
    )


@pytest.mark.parametrize(
    ("named", "verdict", "seen"),
    [
        ((-9, KILLED, 102), "pass", "process 102 (local rank 2, ended by SIGKILL), which was hit first"),
        ((-15, 1, 101), "fail", "process 102 of rank 2 was hit first, and torchrun had sent SIGTERM to 101"),
        ((1, 0, 100), "fail", "process 100 (local rank 0, exit code 1); process 102 of rank 2 was hit first"),
        ((-9, KILLED, 999), "unknown", "torchrun names no process"),
        (None, "unknown", "torchrun names no process"),
    ],
)
def test_a_scenario_may_ask_for_the_right_root_cause(
    tmp_path: Path, named: tuple[int, int, int] | None, verdict: str, seen: str
) -> None:
    story = good()
    lines = ["Sending process 101 closing signal SIGTERM"]
    if named is not None:
        code, local, pid = named
        lines.append(f"failed (exitcode: {code}) local_rank: {local} (pid: {pid}) of binary: /usr/bin/python")
        if code == 1:
            own_error(story, local)
    log(tmp_path, *lines)
    findings = judged(story, tmp_path, changed(PLAN, root_cause="hit"))
    (finding,) = [finding for finding in findings if "root cause" in finding.expected]
    assert finding.verdict == verdict
    assert seen in finding.seen


def test_no_act_on_a_process_leaves_the_right_root_cause_open(tmp_path: Path) -> None:
    story = good()
    story.drop("fault.injecting")
    log(tmp_path, "failed (exitcode: -9) local_rank: 2 (pid: 102) of binary: /usr/bin/python")
    (window, *_) = recovery_windows(PLAN, good().history())
    assert window.recovery is not None
    collector, plan = Collector("mechanism"), changed(PLAN, root_cause="hit")
    judge(Case(plan, window, window.recovery, story.history(), Artifacts(tmp_path, None), collector))
    (finding,) = [finding for finding in collector.findings() if "root cause" in finding.expected]
    assert (finding.verdict, finding.seen) == ("unknown", "the processes that were hit ran on 0 nodes")


def other_launcher(story: Story) -> None:
    story.add(AT + 1, "launcher.found", pid=51, role="launcher")


def no_restart(story: Story) -> None:
    story.events = [event for event in story.events if event.pid is None or event.pid < 200]


def early_start(story: Story) -> None:
    story.add(AT + 0.1, "agent.start", 3, 203)


def later_checkpoint(story: Story) -> None:
    story.add(AT - 0.2, "checkpoint.end", 0, 100, kind="periodic", step=6, path="checkpoints/step-6.pt")


def older_checkpoint(story: Story) -> None:
    story.add(4.0, "checkpoint.end", 0, 100, kind="periodic", step=2, path="checkpoints/step-2.pt")
    for event in ("load.begin", "load.end"):
        story.change(event, 1, path="checkpoints/step-2.pt")


def further(story: Story) -> None:
    story.add(AT - 0.05, "step.end", 0, 100, step=7)


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (other_launcher, "the launcher was replaced"),
        (no_restart, "no rank was started again in recovery 1"),
        (early_start, "rank 3 was started before rank 3 had ended"),
        (later_checkpoint, "step 6"),
        (older_checkpoint, "rank 1 read no checkpoint of step 4, but of step 2"),
        (further, "3 were"),
        (lambda story: story.change("rank.found", 0, 1, ppid=1), "is a child of process 1, not of launcher 50"),
        (lambda story: new_end(story, 1, signal=9), "rank 1: ended by SIGKILL, 0.2 s after the first end of a rank"),
        (lambda story: new_end(story, 1, signal=11), "rank 1: ended by SIGSEGV, which neither torchrun nor"),
        (crash_behind_error, "rank 1: ended by SIGSEGV, which neither torchrun nor an error of a collective does"),
        (lambda story: new_end(story, 1, code=0), "rank 1: exit code 0, as if it had trained to the end"),
    ],
)
def test_each_defect_fails_for_its_reason(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = good()
    spoil(story)
    (finding,) = spoilt(story, tmp_path)
    assert finding[0] == "fail"
    assert seen in finding[1]


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (lambda story: story.drop("launcher.found"), "the launcher was not identified"),
        (lambda story: story.drop("child.exit"), "the launcher reported 0 of 4 ends"),
        (lambda story: story.drop("rank.exit", pid=103), "how rank 3's process before the restart ended is not"),
        (lambda story: new_end(story, 1, code=143), "rank 1: exit code 143, and no error of it is recorded"),
        (lambda story: new_end(story, 1, signal=6), "rank 1: ended by SIGABRT, and no error of it is recorded"),
    ],
)
def test_missing_evidence_is_unknown(tmp_path: Path, spoil: Callable[[Story], None], seen: str) -> None:
    story = good()
    spoil(story)
    (finding,) = spoilt(story, tmp_path)
    assert finding[0] == "unknown"
    assert seen in finding[1]


def test_saves_that_nobody_sees_leave_the_last_checkpoint_open(tmp_path: Path) -> None:
    story = good()
    for event in ("checkpoint.end", "load.begin", "load.end"):
        story.drop(event)
    findings = spoilt(story, tmp_path)
    assert {verdict for verdict, _ in findings} == {"unknown"}
    assert findings[0][1] == "no save of any rank is recorded"


def test_a_save_that_never_ends_shows_that_saves_are_seen(tmp_path: Path) -> None:
    story = good()
    story.drop("checkpoint.end")
    story.add(6.0, "checkpoint.begin", 0, 100, kind="periodic", step=4, path=FILE)
    assert ("fail", "none was finished") in spoilt(story, tmp_path)


def third_start(story: Story, last: int) -> None:
    """The second start ends without a fault at step ``last``, and a third one trains to the end."""
    for rank in range(RANKS):
        story.events = [
            event
            for event in story.events
            if not (event.pid == 200 + rank and event.event.startswith("step.") and event.data["step"] > last)
        ]
        story.drop("rank.exit", pid=200 + rank)
        story.drop("child.exit", child_pid=200 + rank)
        ended(story, rank, 200 + rank, 20.0, code=1)
        process(story, rank, 300 + rank, 22.0, range(5, 13))
        ended(story, rank, 300 + rank, 40.0, code=0)


@pytest.mark.parametrize(("last", "seen"), [(4, "start 2 came to no step"), (6, "start 2 came to step 6")])
def test_a_start_that_fails_before_it_gets_further_is_a_failure(tmp_path: Path, last: int, seen: str) -> None:
    story = good()
    third_start(story, last)
    (finding,) = spoilt(story, tmp_path)
    assert finding == (
        "fail",
        f"{seen} and ended without a fault (rank 0: exit code 1); the starts before had come to step 6",
    )


def test_a_last_start_that_fails_is_one_too(tmp_path: Path) -> None:
    story = good()
    third_start(story, 4)
    story.events = [event for event in story.events if event.pid is None or event.pid < 300]
    assert [seen.partition(" and ")[0] for _, seen in spoilt(story, tmp_path)] == ["start 2 came to no step"]


def test_a_start_that_gets_further_or_is_hit_by_a_fault_is_none(tmp_path: Path) -> None:
    further_on, hit = good(), good()
    third_start(further_on, 9)
    third_start(hit, 4)
    hit.add(19.9, "fault.injecting", 1, 201, fault="second", kind="kill")
    second = replace(PLAN.faults[0], id="second", ranks=(1,))
    again = replace(PLAN.response.recoveries[0], faults=("second",))
    plan = changed(PLAN, faults=(*PLAN.faults, second), recoveries=(*PLAN.response.recoveries, again))
    assert spoilt(further_on, tmp_path) == []
    assert spoilt(hit, tmp_path, plan) == []


def test_another_job_is_not_asked_for_progress(tmp_path: Path) -> None:
    story, collector = good(), Collector("mechanism")
    third_start(story, 4)
    judge_progress(changed(PLAN, protection=()), story.history(), Artifacts(tmp_path, None), collector)
    once = [event for event in story.events if event.pid is None or event.pid < 200]
    story.events = once
    judge_progress(PLAN, story.history(), Artifacts(tmp_path, None), collector)
    assert collector.findings() == []


def seconds(story: Story) -> dict[str, Any]:
    ends = dict(phase_ends(PLAN, story.history(), int(AT * 1e9)))
    return {
        name: pytest.approx(end.mono / 1e9 - AT) if isinstance(end, Timestamp) else end for name, end in ends.items()
    }


def test_the_phases_follow_one_another() -> None:
    assert seconds(good()) == {
        "detection": 0.05,
        "stop": 0.23,
        "relaunch": 1.0,
        "import": 3.1,
        "load": 3.8,
        "first step": 4.7,
        "caught up": 5.7,
    }


def test_without_a_record_of_the_group_the_import_ends_with_the_first_load() -> None:
    story = good()
    story.drop("group.ready", rank=1)
    assert seconds(story)["import"] == 2.9
    story.drop("load.begin")
    text = "a ready process group is recorded for 3 of 4 ranks, and no load of a checkpoint"
    assert seconds(story)["import"] == text


def test_a_script_that_handles_sigterm_is_not_detected_late() -> None:
    """Torchrun collects the killed rank, and sends SIGTERM at once; the others end seconds later by an error."""
    story = good()
    for rank in set(range(RANKS)) - {KILLED}:
        story.drop("child.exit", child_pid=100 + rank)
        ended(story, rank, 100 + rank, AT + 2.2, code=1)
    phases = seconds(story)
    assert (phases["detection"], phases["stop"]) == (0.05, 2.2)


def test_an_end_with_code_0_is_no_failure_for_torchrun() -> None:
    story = good()
    story.drop("child.exit", child_pid=100 + KILLED)
    ended(story, KILLED, 100 + KILLED, AT + 0.05, code=0)
    assert seconds(story)["detection"] == 0.2


@pytest.mark.parametrize("rank", range(RANKS))
def test_the_end_of_a_new_process_does_not_stand_for_an_old_one_s_that_is_not_recorded(rank: int) -> None:
    story = good()
    story.drop("child.exit", child_pid=100 + rank)
    phases = seconds(story)
    assert (phases["detection"], phases["stop"]) == ("the end is recorded for 3 of 4 ranks",) * 2


@pytest.mark.parametrize("event", ["child.exit", "agent.start", "train.begin", "step.begin", "step.end"])
def test_a_phase_without_its_events_has_a_reason(event: str) -> None:
    story = good()
    story.drop(event)
    assert any(isinstance(end, str) for _, end in phase_ends(PLAN, story.history(), int(AT * 1e9)))


def test_processes_that_were_started_again_are_the_sign_that_it_acted() -> None:
    once = good()
    no_restart(once)
    assert RULE.acted is not None
    assert (RULE.acted(good().history()), RULE.acted(once.history())) == (True, False)
