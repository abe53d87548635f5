"""What each fault does to a real process, what proves it, and what puts it back."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.signals import kill, suspend, terminate
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.history.ledger import Ledger
from chaos.machine.job.local import LocalJob, LocalPlatform
from chaos.machine.job.protocol import LaunchSpec, PlatformError
from chaos.machine.linux.process import identify, send_signal, state

KINDS: list[FaultKind] = [kill.KIND, suspend.KIND, terminate.KIND]
SECONDS = 60.0


@pytest.fixture
def job(token: str, tmp_path: Path) -> Iterator[LocalJob]:
    """A job of one process."""
    spec = LaunchSpec(token, "train", ("sleep", "1000"), {"PATH": "/usr/bin:/bin"}, tmp_path, tmp_path / "log")
    job = LocalPlatform().start(spec)
    yield job
    job.stop(0)


@pytest.fixture
def victim(job: LocalJob, tmp_path: Path) -> Victim:
    return Victim(2, job.launcher, tmp_path / "record")


def test_kill_ends_the_process_and_the_kernel_says_so(job: LocalJob, victim: Victim) -> None:
    assert kill.KIND.evidence(job, victim) is None
    assert kill.KIND.undo_steps("kill", [victim]) == []
    kill.KIND.inject(job, victim)
    found = wait_for("evidence", lambda: kill.KIND.evidence(job, victim), seconds=SECONDS)
    assert found == {"signal": 9}


def test_a_process_that_somebody_else_ended_was_not_killed(job: LocalJob, victim: Victim) -> None:
    send_signal(victim.identity, signal.SIGTERM)
    wait_for("end", lambda: job.exit_status(victim.identity), seconds=SECONDS)
    with pytest.raises(FaultMissed, match="rank 2 ended with signal 15, not with signal 9"):
        kill.KIND.evidence(job, victim)


def test_suspend_stops_the_process_and_its_undo_continues_it(
    job: LocalJob, victim: Victim, token: str, tmp_path: Path
) -> None:
    assert suspend.KIND.evidence(job, victim) is None
    (step,) = suspend.KIND.undo_steps("stop", [victim])
    ledger = Ledger(tmp_path / "undo.jsonl")
    ledger.record(step)
    suspend.KIND.inject(job, victim)
    assert wait_for("evidence", lambda: suspend.KIND.evidence(job, victim), seconds=SECONDS) == {"signal": 19}
    undone = undo_step(ledger, step, UNDO_ACTIONS, UndoContext(token, SYSTEM_CLOCK))
    assert undone.ok
    assert state(victim.identity) == "alive"
    assert suspend.KIND.evidence(job, victim) is None


def test_a_process_that_has_ended_cannot_be_suspended(job: LocalJob, victim: Victim) -> None:
    send_signal(victim.identity, signal.SIGKILL)
    wait_for("end", lambda: job.exit_status(victim.identity), seconds=SECONDS)
    with pytest.raises(FaultMissed, match="rank 2 has ended before it could be suspended"):
        suspend.KIND.evidence(job, victim)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_process_that_is_not_the_jobs_is_left_alone(
    kind: FaultKind, job: LocalJob, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    bystander = start("sleep", "1000")
    with pytest.raises(PlatformError, match="is not of the job"):
        kind.inject(job, Victim(2, identify(bystander.pid), tmp_path))
    assert state(identify(bystander.pid)) == "alive"
