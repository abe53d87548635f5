"""What cannot be ended is reported, with the reason, and does not keep the rest alive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.machine.job import ending
from chaos.machine.job.ending import end_processes
from chaos.machine.job.processes import FoundProcess, find_run_processes
from chaos.machine.linux.process import ProcessIdentity, identify, send_signal

Start = Callable[..., "subprocess.Popen[bytes]"]
Found = Callable[[int], list[FoundProcess]]


def test_what_must_not_be_signalled_is_left_and_reported(start: Start, token: str, found: Found) -> None:
    start("sleep", "1000", run=token)
    (victim,) = found(1)
    me = FoundProcess(identify(os.getpid()), os.getppid(), 0, "other", None, None, ("me",))
    result = end_processes(lambda: [me, *find_run_processes(token)], grace_seconds=1, clock=SYSTEM_CLOCK)
    assert [process.identity for process in result.ended] == [victim.identity]
    ((process, reason),) = result.remaining
    assert process == me
    assert "SIGTERM was refused" in reason
    assert not result.complete


def test_what_survives_sigkill_is_given_up_after_its_time(
    start: Start, token: str, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("sleep", "1000", run=token)
    found(1)
    sent: list[int] = []
    monkeypatch.setattr(ending, "send_signal", lambda identity, signum: sent.append(signum))
    result = end_processes(lambda: find_run_processes(token), grace_seconds=0, kill_seconds=0, clock=SYSTEM_CLOCK)
    assert sent == [9], "tried once even if there is no time"
    assert [reason for _, reason in result.remaining] == ["still there after SIGKILL"]
    assert result.ended == ()


def test_one_that_may_not_be_signalled_does_not_protect_the_others(
    start: Start, token: str, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        start("sleep", "1000", run=token)
    processes = found(3)

    def send(identity: ProcessIdentity, signum: int) -> None:
        if identity == processes[0].identity:
            raise PermissionError(1, "Operation not permitted")
        send_signal(identity, signum)

    monkeypatch.setattr(ending, "send_signal", send)
    result = end_processes(lambda: find_run_processes(token), grace_seconds=0, clock=SYSTEM_CLOCK)
    assert {process.pid for process in result.ended} == {process.pid for process in processes[1:]}
    assert [(process.pid, "Operation not permitted" in reason) for process, reason in result.remaining] == [
        (processes[0].pid, True)
    ]
