"""SIGTERM to real processes with, without and against a handler: what proves that it was delivered."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.signals import terminate
from chaos.machine.job.local import LocalJob, LocalPlatform
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.process import send_signal, state
from chaos.machine.linux.procfs import read_signals

KIND = terminate.KIND
SECONDS = 60.0
Run = Callable[[str], Victim]

NO_OP = "signal.signal(signal.SIGTERM, lambda *_: print('heard', flush=True))"
"""What the SDK's processor does, and a trace of it."""


@pytest.fixture
def jobs() -> Iterator[list[LocalJob]]:
    started: list[LocalJob] = []
    yield started
    for job in started:
        job.stop(0)


@pytest.fixture
def run(jobs: list[LocalJob], token: str, tmp_path: Path) -> Run:
    """A process that has executed a line, and waits then."""

    def run(line: str) -> Victim:
        code = f"import signal, time\n{line}\nprint('ready', flush=True)\nwhile True: time.sleep(1000)"
        spec = LaunchSpec(token, "train", (sys.executable, "-c", code), {}, tmp_path, tmp_path / "log")
        jobs.append(LocalPlatform().start(spec))
        wait_for("ready", lambda: "ready" in (tmp_path / "log").read_text(), seconds=SECONDS)
        return Victim(2, jobs[0].launcher, tmp_path / "record")

    return run


def test_a_handler_that_does_nothing_has_taken_the_signal(run: Run, jobs: list[LocalJob], tmp_path: Path) -> None:
    victim = run(NO_OP)
    KIND.inject(jobs[0], victim)
    shown = wait_for("evidence", lambda: KIND.evidence(jobs[0], victim), seconds=SECONDS)
    assert shown == {"signal": 15, "became": "taken by a handler", "caught": True, "pending": False}
    assert state(victim.identity) == "alive"
    wait_for("handler", lambda: "heard" in (tmp_path / "log").read_text(), seconds=SECONDS)


def test_without_a_handler_the_process_ends_and_its_status_is_the_proof(run: Run, jobs: list[LocalJob]) -> None:
    victim = run("pass")
    assert KIND.evidence(jobs[0], victim) is None  # nothing is caught: that it lives proves nothing
    KIND.inject(jobs[0], victim)
    shown = wait_for("evidence", lambda: KIND.evidence(jobs[0], victim), seconds=SECONDS)
    assert (shown["signal"], shown["became"]) == (15, "ended the process")


def test_a_handler_that_ends_the_process_is_told_apart(run: Run, jobs: list[LocalJob]) -> None:
    victim = run("import os; signal.signal(signal.SIGTERM, lambda *_: os._exit(3))")
    KIND.inject(jobs[0], victim)
    wait_for("end", lambda: jobs[0].exit_status(victim.identity), seconds=SECONDS)
    shown = KIND.evidence(jobs[0], victim)
    assert shown is not None and shown["became"] == "taken by a handler that ended the process with exit code 3"


def test_a_signal_that_waits_is_not_delivered_yet(run: Run, jobs: list[LocalJob]) -> None:
    victim = run(f"{NO_OP}; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])")
    KIND.inject(jobs[0], victim)
    signals = read_signals(victim.identity.pid)
    assert signals is not None and 15 in signals.pending and 15 in signals.caught
    assert KIND.evidence(jobs[0], victim) is None
    with pytest.raises(FaultMissed, match="another SIGTERM waiting"):
        KIND.inject(jobs[0], victim)


def test_a_process_that_ignores_it_can_prove_nothing(run: Run, jobs: list[LocalJob]) -> None:
    victim = run("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    with pytest.raises(FaultMissed, match="rank 2 ignores SIGTERM: the kernel drops it"):
        KIND.inject(jobs[0], victim)


def test_a_process_that_somebody_else_killed_was_not_terminated(run: Run, jobs: list[LocalJob]) -> None:
    victim = run("pass")
    send_signal(victim.identity, signal.SIGKILL)
    wait_for("end", lambda: jobs[0].exit_status(victim.identity), seconds=SECONDS)
    with pytest.raises(FaultMissed, match="rank 2 ended with signal 9, not with signal 15"):
        KIND.evidence(jobs[0], victim)
    with pytest.raises(FaultMissed, match="has ended before"):
        KIND.inject(jobs[0], victim)
