"""What became of this process is the kernel's word: starved is told apart from stopped, also on a busy machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.history.reader import read_history
from chaos.machine.linux.procfs import run_times, stolen_times
from chaos.run.watch.own_times import OwnTimes, Spent

pytestmark = pytest.mark.processes

HARNESS = """
import os, sys
from pathlib import Path
from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.writer import HistoryWriter
from chaos.run.watch.host_incidents import noticing_incidents

os.sched_setaffinity(0, {int(sys.argv[2])})
place = Path(sys.argv[1])
with HistoryWriter(place / "harness.jsonl", writer="harness", run="r", clock=SYSTEM_CLOCK) as history:
    with noticing_incidents(history, "train", SYSTEM_CLOCK, place, "token"):
        print("ready", flush=True)
        sys.stdin.read()
"""
LOOP = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@pytest.fixture
def core() -> int:
    return max(os.sched_getaffinity(0))


@contextmanager
def watching(place: Path, core: int) -> Iterator[subprocess.Popen[str]]:
    """A process that notices what befalls it, on one core."""
    command = [sys.executable, "-c", HARNESS, str(place), str(core)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        try:
            assert harness.stdout is not None and harness.stdout.readline() == "ready\n"
            yield harness
        finally:
            harness.kill()


@contextmanager
def busy(core: int) -> Iterator[None]:
    """Two loops that want that core all the time."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP, str(core)]) for _ in range(2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def last_in_line(pid: int) -> Iterator[None]:
    """The kernel runs the process when nobody else wants its core; afterwards like any other."""
    threads = [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    try:
        for thread in threads:
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
        yield
    finally:
        for thread in threads:
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def passes(harness: subprocess.Popen[str], seconds: float) -> None:
    """Let time pass: that is what the harness notices."""
    with pytest.raises(subprocess.TimeoutExpired):
        harness.wait(seconds)


def noticed(place: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(event.event, event.data) for event in read_history(place).events if event.event.startswith("harness.")]


@pytest.mark.skipif(not run_times(os.getpid()), reason="this kernel does not count how long a thread waits")
def test_a_harness_without_a_processor_is_starved_and_not_stopped(tmp_path: Path, core: int) -> None:
    with watching(tmp_path, core) as harness:

        def starved() -> list[tuple[str, dict[str, Any]]]:
            with busy(core), last_in_line(harness.pid):
                passes(harness, 8)
            return noticed(tmp_path)

        events = wait_for("a late look", starved, seconds=300)
    assert {name for name, _ in events} == {"harness.starved"}
    assert all(data["seconds"] > 0 for _, data in events)


def test_a_harness_that_was_stopped_is_told_as_stopped(tmp_path: Path, core: int) -> None:
    with watching(tmp_path, core) as harness:
        os.kill(harness.pid, signal.SIGSTOP)
        try:
            passes(harness, 7)
        finally:
            os.kill(harness.pid, signal.SIGCONT)
        events = wait_for("a late look", lambda: noticed(tmp_path), seconds=300)
    assert [name for name, _ in events][:1] == ["harness.stopped"]
    assert events[0][1]["seconds"] >= 6


def kernel(place: Path, threads: dict[int, tuple[int, int]], stolen: int) -> Path:
    """A /proc that tells of this process: what each thread ran and waited, and what was stolen (ticks) of core 0."""
    own = place / str(os.getpid())
    for thread, (ran, waited) in threads.items():
        (own / "task" / str(thread)).mkdir(parents=True, exist_ok=True)
        (own / "task" / str(thread) / "schedstat").write_text(f"{ran} {waited} 1\n")
    (own / "status").write_text("Cpus_allowed_list:\t0\n")
    (place / "stat").write_text(
        f"cpu  1 1 1 1 1 1 1 {stolen} 0 0\ncpu0 1 1 1 1 1 1 1 {stolen} 0 0\ncpu1 0 0 0 0 0 0 0 99 0 0\n"
    )
    return place


def test_what_the_threads_gained_between_two_looks_counts(tmp_path: Path) -> None:
    slept = iter([3, 3, 10])
    own = OwnTimes(kernel(tmp_path, {1: (10, 100), 2: (5, 7)}, 4), suspended=lambda: next(slept))
    kernel(tmp_path, {1: (11, 150), 2: (5, 9), 3: (2, 1)}, 6)
    tick = stolen_times(tmp_path)[0] // 6
    assert own.look() == Spent(ran=3, waited=53, stolen=2 * tick, suspended=0)
    assert own.look() == Spent(suspended=7)


def test_a_kernel_that_does_not_count_explains_nothing(tmp_path: Path) -> None:
    assert OwnTimes(tmp_path, suspended=lambda: 0).look() == Spent()
