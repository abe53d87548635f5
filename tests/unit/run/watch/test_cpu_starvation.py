"""The waiting times of a run are those of its own processes and of the harness, by the kernel's count."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.run.watch.cpu_starvation import Waited, WaitingTimes

TOKEN = "a-run"
HALF = 500_000_000


class Machine:
    """A made /proc: processes with their environment, and what their threads have waited."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 0
        self.busy({0: 0, 1: 0})
        self.process(os.getpid())
        self.waiting = WaitingTimes(TOKEN, lambda: self.now, root)

    def busy(self, cores: Mapping[int, float]) -> None:
        """Let each core have run anything for so many seconds."""
        ticks = os.sysconf("SC_CLK_TCK")
        lines = [f"cpu{core} {seconds * ticks:.0f} 0 0 9 9 0 0 0 0 0" for core, seconds in cores.items()]
        (self.root / "stat").write_text("\n".join(["cpu 1 2 3 4 5 6 7 8 9 10", *lines, "intr 1"]) + "\n")

    def process(
        self,
        pid: int,
        waits: dict[int, int] | None = None,
        *,
        environment: str = "",
        parent: int = 1,
        started: int = 7,
        arguments: str = "python",
        ran: int = 0,
        turns: int = 0,
        cores: str = "0-1",
    ) -> None:
        """Make or change a process. ``waits`` has what its threads have waited, and ``ran`` what each has run, in
        nanoseconds and so many ``turns``; ``cores`` are those that it may use."""
        place = self.root / str(pid)
        for thread, nanoseconds in (waits or {}).items():
            (place / "task" / str(thread)).mkdir(parents=True, exist_ok=True)
            (place / "task" / str(thread) / "schedstat").write_text(f"{ran} {nanoseconds} {turns}\n")
        place.mkdir(exist_ok=True)
        fields = ["S", str(parent), *["0"] * 17, str(started), *["0"] * 32]
        fields[17] = "1"
        (place / "stat").write_text(f"{pid} (python) {' '.join(fields)}")
        (place / "environ").write_text(environment.replace(" ", "\0"))
        (place / "status").write_text(f"Name:\tpython\nCpus_allowed_list:\t{cores}\n")
        (place / "cmdline").write_text(arguments.replace(" ", "\0"))

    def look(self, nanoseconds: int = HALF, busy: dict[int, float] | None = None) -> tuple[float, str] | None:
        """Look so much later, in which others have kept both cores busy unless told: the seconds and the process."""
        self.now += nanoseconds
        if busy is None:
            busy = dict.fromkeys((0, 1), self.now / 1000000000.0)
        self.busy(busy)
        seen = self.waiting.look()
        return None if seen is None else (seen.seconds, seen.process)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


RANK = f"CHAOS_RUN={TOKEN} MS_ROLE=MS_WORKER RANK_ID=3"


def test_of_all_threads_the_one_that_waited_longest_counts(machine: Machine) -> None:
    machine.process(50, {50: 100_000_000, 51: 300_000_000}, environment=RANK)
    machine.process(60, {60: 200_000_000}, environment=f"CHAOS_RUN={TOKEN} MS_ROLE=MS_SCHED")
    assert machine.look() == (0.3, "rank 3 (process 50)")
    machine.process(50, {50: 150_000_000, 51: 300_000_000}, environment=RANK)
    machine.process(60, {60: 600_000_000}, environment=f"CHAOS_RUN={TOKEN} MS_ROLE=MS_SCHED")
    assert machine.look() == (0.4, "the scheduler (process 60)")
    assert machine.look() is None


@pytest.mark.parametrize(("ran", "seconds"), [(0, 0.4), (250_000_000, 0.3), (500_000_000, 0.2)])
def test_of_the_waiting_only_the_share_counts_in_which_others_had_the_cores(
    machine: Machine, ran: int, seconds: float
) -> None:
    machine.process(50, {50: 400_000_000}, environment=RANK, ran=ran)
    assert machine.look() == (seconds, "rank 3 (process 50)")


def test_a_run_that_has_the_cores_for_itself_waits_for_nobody(machine: Machine) -> None:
    machine.process(50, {50: 400_000_000}, environment=RANK, ran=HALF)
    machine.process(51, {51: 400_000_000}, environment=f"CHAOS_RUN={TOKEN} RANK_ID=2", ran=HALF)
    assert machine.look() is None


@pytest.mark.parametrize(
    ("waited", "ran", "turns", "seen"),
    [
        (499_000_000, 1_000_000, 283, None),
        (490_000_000, 10_000_000, 40, (0.485, "rank 3 (process 50)")),
        (300_000_000, 1_000_000, 283, (0.3, "rank 3 (process 50)")),
    ],
    ids=["it only asks for work", "it works for longer", "it sleeps between"],
)
def test_a_thread_that_spins_is_not_kept_from_anything(
    machine: Machine, waited: int, ran: int, turns: int, seen: tuple[float, str] | None
) -> None:
    machine.process(50, {50: waited}, environment=RANK, ran=ran, turns=turns)
    assert machine.look() == seen


def test_only_cores_count_that_the_process_may_use(machine: Machine) -> None:
    machine.process(50, {50: 400_000_000}, environment=RANK, ran=HALF, cores="1")
    assert machine.look(busy={0: 0.5, 1: 0.5}) is None
    machine.process(50, {50: 800_000_000}, environment=RANK, ran=HALF, cores="1")
    assert machine.look(busy={0: 0.5, 1: 1.0}) == (0.4, "rank 3 (process 50)")


def test_a_machine_that_does_not_tell_what_its_cores_do_tells_of_no_waiting(machine: Machine) -> None:
    machine.process(50, {50: 400_000_000}, environment=RANK)
    assert machine.look(busy={}) is None


def test_processes_of_others_do_not_count(machine: Machine) -> None:
    machine.process(50, {50: HALF}, environment="CHAOS_RUN=another RANK_ID=3")
    machine.process(51, {51: HALF})
    assert machine.look() is None


def test_what_a_process_of_the_run_starts_counts(machine: Machine) -> None:
    machine.process(50, {50: HALF // 2}, environment=f"CHAOS_RUN={TOKEN}", arguments="/usr/bin/python /usr/bin/msrun")
    machine.process(60, {60: HALF}, parent=50)
    assert machine.look() == (0.5, "a process of the run (process 60)")
    machine.process(50, {50: HALF}, environment=f"CHAOS_RUN={TOKEN}", arguments="/usr/bin/python /usr/bin/msrun")
    assert machine.look() == (0.25, "the launcher (process 50)")


def test_a_process_is_known_as_soon_as_it_has_executed(machine: Machine) -> None:
    machine.process(50, {50: HALF})
    assert machine.look() is None
    machine.process(50, {50: HALF}, environment=RANK)
    assert machine.look() == (0.5, "rank 3 (process 50)")


def test_what_a_process_waited_before_it_was_found_is_no_more_than_the_time_of_a_look(machine: Machine) -> None:
    machine.process(50, {50: 90 * HALF}, environment=RANK)
    assert machine.look() == (0.5, "rank 3 (process 50)")


def test_a_number_that_is_used_again_by_a_stranger_does_not_count(machine: Machine) -> None:
    machine.process(50, {50: 0}, environment=RANK)
    machine.look()
    machine.process(50, {50: HALF}, started=8)
    assert machine.look() is None


def test_the_harness_counts_from_the_first_look_on(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    own = os.getpid()
    machine.process(own, {own: 9 * HALF})
    machine.waiting = WaitingTimes(TOKEN, lambda: machine.now, tmp_path)
    assert machine.look() is None
    machine.process(own, {own: 10 * HALF})
    assert machine.look() == (0.5, f"the harness (process {own})")


def test_a_kernel_that_counts_no_waiting_tells_of_none(machine: Machine) -> None:
    machine.process(50, environment=RANK)
    assert machine.look() is None


def test_a_thread_that_spins_hides_no_other_one(machine: Machine) -> None:
    machine.process(50, {50: 499_000_000}, environment=RANK, turns=283)
    machine.process(50, {51: 200_000_000}, environment=RANK)
    assert machine.look() == (0.2, "rank 3 (process 50)")


def test_the_kernel_counts_it() -> None:
    """Two ranks and three strangers want one core: each waits for four fifths of the time, mostly for strangers."""
    core = min(os.sched_getaffinity(0))
    program = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    environment = {name: value for name, value in os.environ.items() if name != "CHAOS_RUN"}
    rank = {**environment, "CHAOS_RUN": TOKEN, "MS_ROLE": "MS_WORKER"}
    waiting = WaitingTimes(TOKEN, time.monotonic_ns)
    seen: list[Waited] = []

    def some_waited() -> bool:
        if (wait := waiting.look()) is not None and wait.process.startswith("rank"):
            seen.append(wait)
        return len(seen) > 3

    places = [*({**rank, "RANK_ID": str(number)} for number in range(2)), *[environment] * 3]
    started = [subprocess.Popen([sys.executable, "-c", program], env=place) for place in places]
    try:
        wait_for("ranks that wait", some_waited, seconds=60, clock=SYSTEM_CLOCK)
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert {wait.process for wait in seen} <= {f"rank {rank} (process {started[rank].pid})" for rank in range(2)}
    assert all(0 < wait.seconds <= (wait.until - wait.since) / 1e9 + 0.001 for wait in seen)
