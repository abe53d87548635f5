"""A process that chaos has not started is hit only as long as it is the one that was chosen, and its end is proved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.exits import ExitListener, listen
from chaos.machine.linux.pidfd import open_pidfd, wait_status
from chaos.machine.linux.process import ProcessIdentity, RefusedProcess, WrongProcess, identify, state
from chaos.machine.running.adopted import AdoptedJob

Start = Callable[..., "subprocess.Popen[bytes]"]


def keeps_statuses() -> bool:
    """Whether this kernel tells the exit status of a process that was reaped."""
    process = subprocess.Popen(["true"])
    descriptor = open_pidfd(process.pid)
    try:
        process.wait()
        return wait_status(descriptor) is not None
    finally:
        os.close(descriptor)


def status_of(job: AdoptedJob, identity: ProcessIdentity) -> ExitStatus:
    return wait_for("its end", lambda: job.exit_status(identity), seconds=120)


def test_the_status_of_a_zombie_is_the_kernels_word(start: Start) -> None:
    process = start("sleep", "1000")
    identity = identify(process.pid)
    with AdoptedJob([identity]) as job:
        assert job.exit_status(identity) is None
        job.signal(identity, signal.SIGKILL)
        assert status_of(job, identity) == ExitStatus(signal=9)
        assert list(job.status_sources.values()) == ["the kernel, by the status of its zombie"]
        process.wait()
        assert status_of(job, identity) == ExitStatus(signal=9)


def test_the_status_of_a_process_that_was_reaped_at_once_is_known_where_the_kernel_keeps_it(start: Start) -> None:
    if not keeps_statuses():
        pytest.skip("this kernel (before Linux 6.15) keeps no status of a process that was reaped")
    process = start("sh", "-c", "exit 3")
    identity = identify(process.pid)  # it may be a zombie already
    with AdoptedJob([identity]) as job:
        assert process.wait() == 3
        assert status_of(job, identity) == ExitStatus(code=3)
        assert job.status_sources[identity] == "the kernel, by its process descriptor"


def test_a_status_that_nobody_can_tell_is_unknown(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.machine.running.adopted.wait_status", lambda descriptor: None)
    process = start("sleep", "1000")
    identity = identify(process.pid)
    with AdoptedJob([identity]) as job:
        process.kill()
        process.wait()
        assert not status_of(job, identity).known


def test_a_pid_that_was_used_again_is_not_taken(start: Start) -> None:
    now = identify(start("sleep", "1000").pid)
    with pytest.raises(WrongProcess, match="its PID belongs to a process started at tick"):
        AdoptedJob([replace(now, start_time=now.start_time - 1)])


REUSE = """
import os, subprocess, sys, time
from pathlib import Path
from chaos.machine.running.adopted import AdoptedJob
from chaos.machine.linux.process import NoSuchProcess, WrongProcess, identify, state
first = subprocess.Popen(["sleep", "1000"])
identity = identify(first.pid)
with AdoptedJob([identity]) as job:
    first.kill()
    first.wait()
    time.sleep(0.02)  # another clock tick, so that the start times differ
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1))
    second = subprocess.Popen(["sleep", "1000"])
    print(second.pid == first.pid)
    try:
        job.signal(identity, 9)
    except NoSuchProcess:
        print("refused")
try:
    AdoptedJob([identity])
except WrongProcess:
    print("refused")
print(state(identity), state(identify(second.pid)))
second.kill()
second.wait()
"""


def test_a_pid_that_is_really_used_again_is_not_hit() -> None:
    """In a PID namespace of its own, where the next PID can be chosen."""
    inside = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a PID namespace of one's own needs unshare(1) and CAP_SYS_ADMIN")
    ran = subprocess.run([*inside, sys.executable, "-c", REUSE], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["True", "refused", "refused", "gone", "alive"], ran.stderr


def test_this_process_and_what_it_descends_from_are_never_chosen() -> None:
    for pid in (os.getpid(), os.getppid(), 1):
        with pytest.raises(RefusedProcess):
            AdoptedJob([identify(pid)])


def test_nothing_but_the_chosen_processes_is_signalled_and_nothing_is_ended(start: Start, tmp_path: Path) -> None:
    chosen, other = (identify(start("sleep", "1000").pid) for _ in range(2))
    with AdoptedJob([chosen]) as job:
        with pytest.raises(PlatformError, match="was not chosen"):
            job.signal(other, signal.SIGKILL)
        with pytest.raises(PlatformError, match="it is not ended here"):
            job.stop(1.0)
        assert job.processes() == []
    assert (state(chosen), state(other)) == ("alive", "alive")


def test_what_the_kernel_tells_while_it_is_listened_to_is_known_on_every_kernel(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a kernel before 6.15, below a parent that collects the status at once."""
    heard = listen()
    if heard is None:
        pytest.skip("the process connector needs root outside all containers, and a kernel with CONFIG_PROC_EVENTS")
    heard.close()
    monkeypatch.setattr("chaos.machine.running.adopted.wait_status", lambda descriptor: None)
    process, other = start("sleep", "1000"), start("sleep", "1000")
    identity = identify(process.pid)
    with AdoptedJob([identity], hearing=True) as job:
        other.terminate()
        other.wait()
        job.signal(identity, signal.SIGKILL)
        process.wait()
        assert status_of(job, identity) == ExitStatus(signal=9)
        assert job.status_sources[identity] == "the kernel, by its process connector"


def test_an_end_of_an_earlier_process_with_the_same_pid_does_not_count(start: Start) -> None:
    heard = listen()
    if heard is None:
        pytest.skip("the process connector needs root outside all containers, and a kernel with CONFIG_PROC_EVENTS")
    with heard:
        process = start("sleep", "1000")
        process.kill()
        process.wait()
        assert wait_for("the end", lambda: heard.status(process.pid, 0), seconds=120) == ExitStatus(signal=9)
        assert heard.status(process.pid, heard.now()) is None


def test_where_nobody_may_listen_there_is_no_listener() -> None:
    def refused() -> ExitListener:
        raise PermissionError("not root")

    assert listen(refused) is None
