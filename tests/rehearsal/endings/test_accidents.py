"""Accidents of the harness itself, on ranks in plain Python: whatever happens, nothing is left and nobody is blamed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.checks.run.check import STOPPED
from chaos.history.event import Event
from chaos.machine.linux.mounts import may_mount, mount_memory, mount_read_only, mounts_at, unmount
from chaos.run.watch.host_incidents import STOPPED_SECONDS
from chaos.soak.leftovers import leftovers
from tests.rehearsal.kit import SCENARIOS, Chaos, Done, Harness, Run, checks_of, said

pytestmark = pytest.mark.nightly

PLAIN = "plain-kill-rank.yaml"
SLOW = SCENARIOS / "plain-slow-resume.yaml"
MOMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a rank is held": ("barrier.reached", {}),
    "a fault is made": ("fault.landed", {}),
    "the resume trains": ("step.begin", {"attempt": "resume", "rank": 1}),
}
needs_mounts = pytest.mark.skipif(not may_mount(), reason="mounting needs CAP_SYS_ADMIN, which this process has not")


def at(harness: Harness, moment: str) -> tuple[Run, Event]:
    """Wait for the moment of a run."""
    run = harness.run("plain-kill-rank")
    name, match = MOMENTS[moment]
    return run, harness.event(run, name, **match)


def nothing_is_left(chaos: Chaos, harness: Harness) -> None:
    assert leftovers(chaos.reports, harness.process.pid) == []
    looked_at = len(chaos.runs())
    assert chaos.heal().json == {"schema_version": 1, "healed": True, "looked_at": looked_at, "runs": []}


def blames_nobody(done: Done) -> None:
    assert checks_of(done.run.result, "fail") == [], said(checks_of(done.run.result, "fail"))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_harness_that_is_stopped_blames_nobody_and_says_why(fresh: Chaos, moment: str) -> None:
    harness = fresh.start_run(PLAIN, "--baseline", "none")
    at(harness, moment)
    harness.signal(signal.SIGSTOP)
    SYSTEM_CLOCK.sleep(STOPPED_SECONDS + 1)  # the time is what is tested
    harness.signal(signal.SIGCONT)
    done = harness.end()
    assert done.code == 2, done.errors
    assert "(SIGSTOP, or the machine was frozen)" in said(checks_of(done.run.result, "unknown"))
    blames_nobody(done)
    nothing_is_left(fresh, harness)


MINUTE = 61.0
"""Longer than anything that the harness, an agent or the stand-in for the SDK waits a minute for."""


@pytest.mark.parametrize(
    ("moment", "steps", "becomes"),
    [
        (("attempt.start", {"attempt": "resume"}), 24, "waits"),  # before any rank can ask the harness
        (MOMENTS["the resume trains"], 24, "ends"),
        (MOMENTS["the resume trains"], 184, "trains on"),
    ],
    ids=["the resume starts and waits", "the resume trains and ends", "the resume trains and outlasts it"],
)
def test_a_resumed_job_is_not_blamed_for_a_minute_in_which_the_harness_was_stopped(
    fresh: Chaos, moment: tuple[str, dict[str, Any]], steps: int, becomes: str
) -> None:
    harness = fresh.start_run(SLOW, "--set", f"steps={steps}")
    run = harness.run(SLOW.stem)
    name, match = moment
    harness.event(run, name, **match)
    harness.signal(signal.SIGSTOP)
    SYSTEM_CLOCK.sleep(MINUTE)  # the time is what is tested
    if becomes == "ends":
        harness.until(
            "the end of the resumed job",
            lambda: len(run.history.select("step.end", attempt="resume", step=steps)) == 2,
        )
    harness.signal(signal.SIGCONT)
    done = harness.end()
    assert done.code == 2, done.errors
    blames_nobody(done)
    nothing_is_left(fresh, harness)
    stops = run.history.select(STOPPED, attempt="resume")
    longest = max(stops, key=lambda event: float(event.data["seconds"]))  # a starved machine adds short ones
    assert longest.data["seconds"] >= MINUTE
    for event in stops:
        message = f"stopped for {event.data['seconds']} s (SIGSTOP, or the machine was frozen)"
        assert message in said(checks_of(done.run.result, "unknown"))
    trained = [event.mono for event in run.history.select("step.end", attempt="resume")]
    assert any(at > longest.data["until"] for at in trained) == (becomes != "ends")


def test_heal_leaves_a_stopped_harness_alone_and_says_how_to_go_on(fresh: Chaos) -> None:
    harness = fresh.start_run(PLAIN, "--baseline", "none")
    run, _ = at(harness, "a rank is held")
    harness.signal(signal.SIGSTOP)
    (report,) = fresh.heal().json["runs"]
    assert report["outcome"] == "live" and f"kill -CONT {harness.process.pid}" in report["found"][0]
    harness.signal(signal.SIGKILL)
    harness.end()
    assert fresh.heal().json["healed"]
    nothing_is_left(fresh, harness)
    assert fresh.analyze(run).code == 2


def test_two_harnesses_at_once_do_not_touch_each_other_and_neither_does_heal(fresh: Chaos) -> None:
    both = [fresh.start_run(PLAIN), fresh.start_run(PLAIN)]
    both[0].event(both[0].run("plain-kill-rank"), "fault.armed")
    during = fresh.heal()
    assert during.code == 0 and {run["outcome"] for run in during.json["runs"]} == {"live"}
    for done in [harness.end() for harness in both]:
        assert done.code == 0, done.errors + said(checks_of(done.run.result, "unknown"))
    for harness in both:
        nothing_is_left(fresh, harness)


@pytest.fixture
def small_disk(fresh: Chaos) -> Iterator[Chaos]:
    """Reports on a disk of their own, with little room."""
    fresh.reports.mkdir()
    mount_memory(fresh.reports, "small-disk", 32 << 20)
    yield fresh
    while mounts_at(fresh.reports):
        unmount(fresh.reports)


def fill(directory: Path) -> None:
    with (directory / "ballast").open("wb") as file:
        for size in (1 << 16, 1):
            try:
                while os.write(file.fileno(), bytes(size)):
                    continue
            except OSError:
                continue


@needs_mounts
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_disk_that_runs_full_blames_nobody(small_disk: Chaos, moment: str) -> None:
    harness = small_disk.start_run(PLAIN, "--baseline", "none")
    run, _ = at(harness, moment)
    fill(small_disk.reports)
    done = harness.end()
    assert done.code in (2, 3), done.errors
    (small_disk.reports / "ballast").unlink()
    assert small_disk.heal().code == 0
    nothing_is_left(small_disk, harness)
    judged = small_disk.analyze(run)
    assert judged.code == 2 and checks_of(judged.json, "fail") == [], said(checks_of(judged.json, "fail"))


@needs_mounts
@pytest.mark.parametrize("moment", MOMENTS)
def test_reports_that_become_read_only_blame_nobody(small_disk: Chaos, moment: str) -> None:
    harness = small_disk.start_run(PLAIN, "--baseline", "none")
    run, _ = at(harness, moment)
    mount_read_only(small_disk.reports)
    done = harness.end()
    assert done.code == 3 and "The file system is read-only" in done.errors
    assert [
        leftover for leftover in leftovers(small_disk.reports, harness.process.pid) if "open undo step" not in leftover
    ] == []
    unmount(small_disk.reports)
    assert small_disk.heal().code == 0
    nothing_is_left(small_disk, harness)
    judged = small_disk.analyze(run)
    assert judged.code == 2 and checks_of(judged.json, "fail") == [], said(checks_of(judged.json, "fail"))


@needs_mounts
def test_reports_that_are_read_only_from_the_start_are_refused(small_disk: Chaos) -> None:
    mount_read_only(small_disk.reports)
    done = small_disk.run(PLAIN)
    assert done.code == 64 and "no run can be written there" in done.errors


TERMINAL = """
import pty, os, signal, sys
pid, master = pty.fork()
if pid == 0:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that were started by nohup ignore it
    os.execv(sys.executable, [sys.executable, "-m", "chaos", *sys.argv[1:]])
os.set_blocking(master, False)
while os.read(0, 1) == b"r":  # whoever started this says how long the terminal stays
    try:
        os.read(master, 65536)
    except BlockingIOError:
        pass
os.close(master)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_terminal_that_is_closed_ends_the_run_in_order(fresh: Chaos, moment: str) -> None:
    arguments = ["run", PLAIN, "--cores", "1", "--baseline", "none", "--reports", str(fresh.reports)]
    name, match = MOMENTS[moment]
    with subprocess.Popen([sys.executable, "-c", TERMINAL, *arguments], stdin=subprocess.PIPE) as terminal:
        assert terminal.stdin is not None

        def reached() -> list[Event]:
            assert terminal.stdin is not None and terminal.poll() is None
            terminal.stdin.write(b"r")
            terminal.stdin.flush()
            return [event for run in fresh.runs() for event in run.history.select(name, **match)]

        wait_for(moment, reached, seconds=300)
        terminal.stdin.close()
        assert terminal.wait(300) == 130
    (run,) = fresh.runs()
    assert [event.data for event in run.history.select("run.end")] == [{"interrupted": True, "error": None}]
    assert leftovers(fresh.reports, terminal.pid) == []


def test_the_runs_of_a_soak_end_with_it(fresh: Chaos) -> None:
    """How many of them train at once depends on the cores that others have leased."""
    soak = fresh.start("soak", SLOW, "--times", "2", "--jobs", "2", "--reports", fresh.reports)
    training = soak.until("a run that trains", lambda: _training(fresh))
    soak.signal(signal.SIGKILL)
    soak.end()
    since = time.monotonic()
    wait_for("the end of its runs", lambda: leftovers(fresh.reports, soak.process.pid) == [], seconds=60)
    print(f"its runs had ended after {time.monotonic() - since:.1f} s")
    nothing_is_left(fresh, soak)
    ends = [event.data["interrupted"] for run in training for event in run.history.select("run.end")]
    assert ends == [True] * len(training)


def _training(chaos: Chaos) -> list[Run]:
    runs = [run for run in chaos.runs() if run.path.name.startswith(SLOW.stem)]
    return [run for run in runs if run.history.first("step.begin") is not None]
