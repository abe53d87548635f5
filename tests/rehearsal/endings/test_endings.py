"""However a run ends, nothing of it is left, and the exit code and the error say why it ended."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.wait import Patience
from chaos.history.event import Event
from chaos.machine.leases import Leases
from tests.rehearsal.kit import SCENARIOS, Chaos, Done, Harness, Run, checks_of, said

DEADLINES = SCENARIOS / "deadlines.yaml"
BROKEN = SCENARIOS / "broken-job.yaml"

FAIL_AT_STEP_3 = """
from chaos.run.launch import attempt

take = attempt.Attempt._take_events

def fail_at_step_3(self):
    take(self)
    if len(self._steps) == 4 and min(self._steps.values()) >= 3:
        raise ZeroDivisionError("a defect of the harness")

attempt.Attempt._take_events = fail_at_step_3
"""


LONG = {"plain": ("--set", "steps=2000", "--set", "at=1900", "--baseline", "none")}
"""Steps of plain ranks take milliseconds: so many that the signal comes in time on a busy machine too."""


def assert_clean(chaos: Chaos) -> None:
    """Nothing of any run is left: no process, port, private directory or open undo step. The harness has looked too."""
    assert chaos.runs()
    for run in chaos.runs():
        assert run.left() == []
        looks = run.history.select("hygiene")
        assert [
            event for event in looks if event.data["orphans"] or event.data["ports"] or event.data["private_left"]
        ] == []
        assert len(looks) == len(run.history.select("attempt.start", attempt="train"))
    looked_at = len(chaos.runs())
    assert chaos.heal().json == {"schema_version": 1, "healed": True, "looked_at": looked_at, "runs": []}


def in_training(harness: Harness) -> Event:
    return harness.event(harness.run("deadlines"), "step.end", attempt="train", rank=1, step=2)


def in_the_resumed_job(harness: Harness) -> Event:
    return harness.event(harness.run("deadlines"), "rank.found", attempt="resume", rank=3)


def in_the_baseline(harness: Harness) -> Event:
    return harness.event(harness.run("baseline"), "step.end", attempt="train", rank=3, step=1)


@pytest.mark.parametrize(
    ("job", "number", "moment"),
    [
        ("plain", signal.SIGINT, in_training),
        pytest.param("rehearsal", signal.SIGINT, in_training, marks=pytest.mark.nightly),
        pytest.param("rehearsal", signal.SIGTERM, in_the_resumed_job, marks=pytest.mark.nightly),
    ],
    ids=["ctrl-c in training", "ctrl-c in training of MindSpore", "SIGTERM in the resumed job"],
)
def test_a_signal_ends_the_run_in_order(
    chaos: Chaos, job: str, number: int, moment: Callable[[Harness], Event]
) -> None:
    harness = chaos.start_run(DEADLINES, "--set", f"job={job}", *LONG.get(job, ()))
    moment(harness)
    harness.signal(number)
    assert_interrupted(harness.end())
    assert_clean(chaos)


@pytest.mark.nightly
def test_a_closed_terminal_ends_a_run_that_makes_its_baseline(fresh: Chaos) -> None:
    harness = fresh.start_run(DEADLINES)
    in_the_baseline(harness)
    harness.signal(signal.SIGHUP)
    assert_interrupted(harness.end())
    assert_clean(fresh)
    # Half a baseline is never taken for one.
    assert not list(fresh.reports.glob(".baselines/*.txt"))


@pytest.mark.nightly
def test_pressing_ctrl_c_twice_does_not_cut_off_the_teardown(chaos: Chaos) -> None:
    harness = chaos.start_run(DEADLINES)
    in_training(harness)
    harness.signal(signal.SIGINT)
    harness.event(harness.run("deadlines"), "fault.missed")  # the first thing that the teardown does
    harness.signal(signal.SIGINT)
    harness.signal(signal.SIGTERM)
    assert_interrupted(harness.end())
    assert_clean(chaos)


@pytest.mark.nightly
def test_ctrl_c_while_a_rank_is_suspended_continues_it_before_it_is_ended(chaos: Chaos) -> None:
    harness = chaos.start_run(DEADLINES, "--set", "kind=suspend")
    run = harness.run("deadlines")
    harness.event(run, "fault.landed")
    harness.signal(signal.SIGINT)
    assert_interrupted(harness.end())
    assert_clean(chaos)
    (healed,), (exited,) = run.history.select("fault.healed"), run.history.select("rank.exit", rank=2)
    assert healed.data["how"].startswith(f"continued process {exited.pid} ") and healed.mono < exited.mono


def test_ctrl_c_while_waiting_for_cores_ends_the_call_before_any_run(fresh: Chaos, tmp_path: Path) -> None:
    directory = tmp_path / "leases"
    directory.mkdir(mode=0o700)
    elsewhere = f"import pathlib\nfrom chaos.machine import leases\nleases.default_directory = lambda: {directory!r}"
    leases = Leases(directory)
    cores = os.sched_getaffinity(0)
    with leases.take_cores(len(cores), wait=Patience(1)):
        harness = fresh.start_run(DEADLINES, patch=elsewhere.replace("PosixPath", "pathlib.Path"))
        harness.until("the wait for a core", lambda: "every core that would do is leased" in harness.errors)
        harness.signal(signal.SIGINT)
        done = harness.end()
    assert (done.code, done.json["interrupted"], done.json["not_run"]) == (130, True, ["deadlines"])
    assert fresh.runs() == []


def assert_interrupted(done: Done) -> None:
    assert done.code == 130, done.errors
    assert (done.json["interrupted"], done.json["verdict"]) == (True, "unknown")
    assert "the run was interrupted" in said(checks_of(done.run.result, "unknown"))
    (end,) = done.run.history.select("run.end")
    assert end.data == {"interrupted": True, "error": None}


def test_the_deadline_of_the_whole_run_ends_it(chaos: Chaos) -> None:
    done = chaos.run(DEADLINES, "--set", "run=3s")
    assert_unknown(done, "run", "deadline run (3 s) is kept", "while waiting for 'start'")
    assert_clean(chaos)


@pytest.mark.nightly
def test_the_deadline_of_one_wait_ends_the_run_and_helpers_of_ranks_too(chaos: Chaos) -> None:
    done = chaos.run(BROKEN, "--set", "script=hangs_before_training.py", "--set", "start=12s", "--baseline", "none")
    assert_unknown(done, "run", "deadline start (12 s) is kept", "ranks 0-3 joined but have not begun their first step")
    # They did not listen to SIGTERM.
    signals = {event.rank: event.data["signal"] for event in done.run.history.select("rank.exit")}
    assert signals == dict.fromkeys(range(4), signal.SIGKILL)
    assert_clean(chaos)


def test_a_defect_of_the_harness_is_an_error_of_its_own(chaos: Chaos) -> None:
    harness = chaos.start_run(DEADLINES, "--set", "job=plain", patch=FAIL_AT_STEP_3)
    run, done = harness.run("deadlines"), harness.end()
    assert done.code == 3
    assert "the harness itself failed" in done.errors and "ZeroDivisionError: a defect of the harness" in done.errors
    (cell,) = done.json["cells"]
    assert cell["verdict"] is None and "ZeroDivisionError" in cell["error"]
    (end,) = run.history.select("run.end")
    assert end.data == {"interrupted": False, "error": "ZeroDivisionError: a defect of the harness"}
    assert_clean(chaos)
    judged = chaos.analyze(run)
    assert judged.code == 2 and "a defect of the harness" in said(checks_of(judged.json, "unknown"))


@pytest.mark.nightly
@pytest.mark.parametrize("baseline", ["none", "auto"])
def test_a_job_that_dies_before_its_first_step_is_named_with_its_log(fresh: Chaos, baseline: str) -> None:
    done = fresh.run(BROKEN, "--baseline", baseline)
    early = "before every rank had begun its first step"
    assert_unknown(done, "run", "ended with exit code 1 after", early, "logs/train")
    assert_clean(fresh)
    (log, *_) = next(run for run in fresh.runs() if (run.path / "logs").is_dir()).path.glob("logs/train/worker_*.log")
    assert "no_such_library_of_the_job" in log.read_text("utf-8")


@pytest.mark.nightly
def test_a_port_that_is_taken_ends_the_run_with_the_rank_that_needed_it(fresh: Chaos) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = fresh.run(SCENARIOS / "taken-port.yaml", "--set", f"port='{taken.getsockname()[1]}'")
    assert_unknown(done, "run", "ended with exit code 2", "the controller cannot listen on 127.0.0.1", "logs/train")
    log = (done.run.path / "logs/train/worker_0.log").read_text("utf-8")
    assert "controller cannot listen on 127.0.0.1" in log
    assert_clean(fresh)


def assert_unknown(done: Done, check: str, *texts: str) -> Run:
    assert done.code == 2, done.errors + done.output
    unknown = checks_of(done.run.result, "unknown")
    message = said([candidate for candidate in unknown if candidate["name"] == check])
    for text in texts:
        assert text in message, said(unknown)
    return done.run
