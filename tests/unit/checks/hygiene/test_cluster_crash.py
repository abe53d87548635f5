"""F-15 is known by its signature alone: a crash that lacks one piece of the evidence is a crash like any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.finding import Finding
from chaos.evidence.signatures.cluster_crash import OBSERVATION, crashes_of
from tests.kit.runs.good_run import LAST, GoodRun, pid_of, record
from tests.kit.runs.repaired_run import uce_run
from tests.unit.checks.judging import Judge, said

RANK = 3
PID = pid_of("resume", RANK)
MAIN = 0x7FD246406740
STACKS = f"logs/resume/stacks-rank_{RANK}-{PID}.txt"
SCHEDULER = "logs/resume/scheduler.log"
NATIVE = f"""\
Fatal Python error: Segmentation fault

Thread 0x{MAIN:016x} (most recent call first):
  <no Python frame>

Extension modules: numpy.core._multiarray_umath (total: 1)
"""
WORKER = 'Thread 0x00007f0000000001 (most recent call first):\n  File "/job/train.py", line 3 in load\n\n'
LEFT = (
    "[WARNING] DISTRIBUTED(710,7f67abdff6c0,python):2026-11-28-01:07:53.299.820 "
    f"[mindspore/ccsrc/cluster/topology/meta_server_node.cc:323] ProcessUnregister] Node {RANK} has unregistered.\n"
)
PLACE: dict[str, Any] = {"attempt": "resume", "rank": RANK, "pid": PID}

Spoil = Callable[[GoodRun], object]


def crashed(run: GoodRun) -> GoodRun:
    """Make a rank of the resumed job end as F-15 ends it."""
    run.only("rank.exit", attempt="resume", rank=RANK).update(signal=11, code=None)
    run.only("agent.start", attempt="resume", rank=RANK).update(stacks={"signal": 62, "main": MAIN})
    run.others[STACKS] = NATIVE.encode()
    run.others[SCHEDULER] = (LEFT.replace(f"Node {RANK}", "Node 0") + LEFT).encode()
    return run


def ends(run: GoodRun, judged: Judge) -> list[Finding]:
    """What the check says of the rank's exit: exactly one statement, which does not pass."""
    judgement, text = judged(run), f"rank {RANK} of attempt resume ends with exit code 0"
    found = [*said(judgement, "hygiene", "fail", text), *said(judgement, "hygiene", "unknown", text)]
    assert len(found) == 1
    return found


def stacks(old: str, new: str) -> Spoil:
    assert old in NATIVE
    return lambda run: run.others.update({STACKS: NATIVE.replace(old, new).encode()})


def end(**status: object) -> Spoil:
    return lambda run: run.only("rank.exit", attempt="resume", rank=RANK).update(status)


def without_end(run: GoodRun) -> None:
    for event in ("train.end", "agent.cost"):
        assert run.drop(event, attempt="resume", rank=RANK) == 1


def with_record(at: float, event: str, **fields: Any) -> Spoil:
    return lambda run: run.add(f"resume-rank_{RANK}", record(at, event, **PLACE, **fields))


def in_harness(at: float, event: str, **fields: Any) -> Spoil:
    return lambda run: run.add("harness", record(at, event, **fields))


def test_a_crash_with_the_signature_fails_by_its_finding(run: GoodRun, judged: Judge) -> None:
    (found,) = ends(crashed(run), judged)
    assert (found.verdict, found.seen, found.data.finding, found.data.ranks) == ("fail", OBSERVATION, "F-15", (RANK,))
    assert {STACKS, SCHEDULER} <= set(found.where)


def test_a_protected_rank_ends_its_processor_first(run: GoodRun, judged: Judge) -> None:
    with_record(24.2, "sdk.disconnected")(crashed(run))
    assert ends(run, judged)[0].data.finding == "F-15"


def test_other_threads_may_run_python(run: GoodRun, judged: Judge) -> None:
    crashed(run)
    stacks("Thread 0x00007fd", f"{WORKER}Thread 0x00007fd")(run)
    assert ends(run, judged)[0].data.finding == "F-15"


def test_a_run_without_the_crash_needs_none_of_it(run: GoodRun, judged: Judge) -> None:
    crashed(run)
    end(signal=None, code=0)(run)
    assert said(judged(run), "hygiene", "fail", "") == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(without_end, id="before the end of the training"),
        pytest.param(lambda run: run.drop("agent.cost", attempt="resume", rank=RANK), id="within the last record"),
        pytest.param(lambda run: run.drop("step.end", attempt="resume", rank=RANK, step=LAST), id="a step before"),
        pytest.param(with_record(24.2, "step.begin", step=LAST + 1), id="it trained again"),
        pytest.param(stacks("Thread 0x00007fd", "Current thread 0x00007fd"), id="in the main thread"),
        pytest.param(
            stacks("Thread 0x00007fd", f"Current {WORKER[0].lower()}{WORKER[1:]}Thread 0x00007fd"), id="Python"
        ),
        pytest.param(stacks("  <no Python frame>", '  File "/job/train.py", line 9 in save'), id="the job still runs"),
        pytest.param(stacks("Segmentation fault", "Aborted"), id="another error in the stacks"),
        pytest.param(stacks(f"{MAIN:016x}", f"{MAIN + 1:016x}"), id="no main thread in the stacks"),
        pytest.param(stacks("Thread 0x", "Strand 0x"), id="another form"),
        pytest.param(stacks("Fatal", "\nFatal"), id="other content first"),
        pytest.param(lambda run: run.others.update({STACKS: (NATIVE + NATIVE).encode()}), id="two dumps"),
        pytest.param(lambda run: run.others.update({STACKS: NATIVE.encode()[:90]}), id="a dump that is cut off"),
        pytest.param(lambda run: run.others.pop(STACKS), id="no stacks"),
        pytest.param(lambda run: run.others.pop(SCHEDULER), id="no log of the scheduler"),
        pytest.param(
            lambda run: run.others.update({SCHEDULER: LEFT.replace(f"Node {RANK}", "Node 2").encode()}),
            id="another rank has left",
        ),
        pytest.param(
            lambda run: run.only("launcher.exit", attempt="resume", role="launcher").update(code=1), id="launcher"
        ),
        pytest.param(
            in_harness(21.5, "fault.injecting", fault="kill-1", attempt="resume", rank=RANK, pid=PID),
            id="a fault in it",
        ),
        pytest.param(
            in_harness(24.3, "fault.injecting", fault="kill-1", attempt="resume", rank=0, pid=1), id="a fault meanwhile"
        ),
        pytest.param(
            in_harness(24.3, "deadline.expired", name="end", seconds=1.0, attempt="resume"), id="after a deadline"
        ),
    ],
)
def test_any_other_crash_fails_as_before(spoil: Spoil, run: GoodRun, judged: Judge) -> None:
    spoil(crashed(run))
    (found,) = ends(run, judged)
    assert (found.seen.partition(" (")[0], found.data.finding) == ("ended by SIGSEGV", None)


@pytest.mark.parametrize("signal", [4, 6, 7, 8, 9, 15])
def test_any_other_signal_fails_as_before(signal: int, run: GoodRun, judged: Judge) -> None:
    crashed(run)
    end(signal=signal)(run)
    (found,) = ends(run, judged)
    assert found.seen.startswith("ended by ") and found.data.finding is None


def test_a_rank_that_the_fault_has_left_fails_as_before(run: GoodRun, judged: Judge) -> None:
    """In the first launch no rank trains to the end."""
    run.only("rank.exit", attempt="train", rank=0).update(signal=11, code=None)
    run.only("agent.start", attempt="train", rank=0).update(stacks={"signal": 62, "main": MAIN})
    run.others[f"logs/train/stacks-rank_0-{pid_of('train', 0)}.txt"] = NATIVE.encode()
    run.others["logs/train/scheduler.log"] = LEFT.replace(f"Node {RANK}", "Node 0").encode()
    found = said(judged(run), "hygiene", "fail", "rank 0 of attempt train ends with")
    assert [(finding.seen, finding.data.finding) for finding in found] == [("ended by SIGSEGV", None)]


def test_a_fault_free_run_with_the_crash_is_known_by_its_directory(tmp_path: Path) -> None:
    run = uce_run()
    run.only("rank.exit", attempt="train", rank=2).update(signal=11, code=None)
    run.only("agent.start", attempt="train", rank=2).update(stacks={"signal": 62, "main": MAIN})
    run.others[f"logs/train/stacks-rank_2-{pid_of('train', 2)}.txt"] = NATIVE.encode()
    run.others["logs/train/scheduler.log"] = LEFT.replace(f"Node {RANK}", "Node 2").encode()
    assert crashes_of(run.write(tmp_path / "with")) == [2]
    run.others.pop("logs/train/scheduler.log")
    assert crashes_of(run.write(tmp_path / "without")) == []
    assert crashes_of(tmp_path / "nowhere") == []
