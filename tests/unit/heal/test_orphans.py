"""What a rank has left without a trace of the run is ended when the record proves it, and told when it does not."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.heal.heal import heal_all, heal_run
from chaos.heal.heal_report import HealReport
from chaos.history.writer import HistoryWriter
from chaos.machine.linux.process import ProcessIdentity, has_ended, identify, send_signal, state
from chaos.store.directory import RunDirectory, create_run, update_run


@dataclass
class KilledRun:
    """A run whose harness was killed after its rank 1 had died; the rank has left a process."""

    owned: RunDirectory
    started: list[ProcessIdentity] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.owned.path

    def rank(self, *, command: str = "sleep 1000", log: str = "logs/worker_1.log") -> tuple[ProcessIdentity, int]:
        """Start a rank that leaves a process and dies. Returns who was left, and the start time of the rank."""
        (self.path / log).parent.mkdir(parents=True, exist_ok=True)
        left = self.path.parent / "left"
        left.unlink(missing_ok=True)
        script = f"env -i {command} & echo $! > {left}; read go"
        with (self.path / log).open("wb") as output:
            rank = subprocess.Popen(
                ["sh", "-c", script], stdin=subprocess.PIPE, stdout=output, start_new_session=True, cwd="/"
            )
        pid = int(wait_for("who is left", lambda: left.read_text().strip() if left.exists() else None, seconds=120))
        wait_for("its exec", lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()[:6], seconds=120)
        start_time = identify(rank.pid).start_time
        self.started.append(identify(pid))
        rank.communicate(b"go\n")
        self.leader = rank.pid
        return self.started[-1], start_time

    def recorded(self, start_time: int) -> None:
        """What the harness had recorded of the rank before it was killed."""
        path = self.path / "history" / "harness.jsonl"
        with HistoryWriter(path, writer="harness", run=self.owned.token, clock=SYSTEM_CLOCK) as history:
            history.record("rank.found", attempt="train", rank=1, pid=self.leader, start_time=start_time, ppid=1)

    def heal(self) -> HealReport:
        self.owned.lock.release()
        return heal_run(self.path)


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[KilledRun]:
    run = KilledRun(create_run(tmp_path / "reports", "kill-rank"))
    yield run
    for identity in run.started:
        with suppress(LookupError):
            send_signal(identity, signal.SIGKILL)


def test_an_orphan_in_a_recorded_session_is_found_and_ended(killed: KilledRun) -> None:
    orphan, start_time = killed.rank()
    killed.recorded(start_time)
    killed.owned.lock.release()
    (report,) = heal_all(killed.path.parent)
    assert report.outcome == "healed"
    assert any(f"ended {orphan}" in text for text in report.done)
    assert has_ended(state(orphan))
    assert heal_all(killed.path.parent) == []


Spoil = Callable[[KilledRun], ProcessIdentity]


def own_session(killed: KilledRun) -> ProcessIdentity:
    orphan, start_time = killed.rank(command="setsid sleep 1000")
    killed.recorded(start_time)
    return orphan


def never_recorded(killed: KilledRun) -> ProcessIdentity:
    return killed.rank()[0]


def another_process_had_the_pid(killed: KilledRun) -> ProcessIdentity:
    """The rank that was recorded began later than the process in the session of its number."""
    orphan, start_time = killed.rank()
    killed.recorded(start_time + 10_000)
    return orphan


def begun_after_the_harness(killed: KilledRun) -> ProcessIdentity:
    path = killed.path / "history" / "harness.jsonl"
    with HistoryWriter(path, writer="harness", run=killed.owned.token, clock=SYSTEM_CLOCK) as history:
        written = history.record("run.start").mono
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    wait_for("another tick", lambda: SYSTEM_CLOCK.mono() > written + 2 * tick, seconds=120)
    orphan, start_time = killed.rank()
    line = path.read_text().splitlines()[1].replace('"run.start"', '"rank.found"').replace('"rank":null', '"rank":1')
    said = line.replace('"pid":null', f'"pid":{killed.leader},"start_time":{start_time}')
    path.write_text(f"{path.read_text().splitlines()[0]}\n{said}\n")
    return orphan


@pytest.mark.parametrize("spoil", [own_session, never_recorded, another_process_had_the_pid, begun_after_the_harness])
def test_what_the_record_does_not_prove_is_told_and_not_ended(killed: KilledRun, spoil: Spoil) -> None:
    orphan = spoil(killed)
    report = killed.heal()
    assert report.outcome == "failed"
    (text,) = report.failed
    assert f"if it is the job's, end it: kill {orphan.pid}" in text and "logs/worker_1.log" in text
    assert state(orphan) == "alive"


def test_a_process_of_another_run_or_of_nobody_is_not_even_told(killed: KilledRun, tmp_path: Path) -> None:
    orphan, start_time = killed.rank(log="notes.txt")  # somebody's own redirection
    other, _ = killed.rank(log="../other/logs/worker_1.log")
    killed.recorded(start_time)
    assert killed.heal().outcome == "nothing"
    assert (state(orphan), state(other)) == ("alive", "alive")


def test_in_a_job_that_was_running_before_nothing_is_looked_for(killed: KilledRun) -> None:
    orphan, start_time = killed.rank()
    killed.recorded(start_time)
    update_run(killed.path, adopted={})
    assert killed.heal().done == []
    assert state(orphan) == "alive"
