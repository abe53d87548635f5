"""A signal reaches the very process that was meant, or nobody."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.machine.linux import pidfd, process
from chaos.machine.linux.pidfd import PidfdUnsupported
from chaos.machine.linux.process import (
    NoSuchProcess,
    ProcessIdentity,
    RefusedProcess,
    WrongProcess,
    alive,
    identify,
    send_signal,
    state,
    wait_ended,
)
from chaos.machine.linux.procfs import command_line, environment, parse_stat, read_stat

Start = Callable[..., "subprocess.Popen[bytes]"]


def descriptors_of(pid: int) -> int:
    """How many descriptors this process has of another. What other threads open meanwhile does not count."""
    found = 0
    for path in Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            found += f"Pid:\t{pid}\n" in path.read_text()
    return found


def wait_state(identity: ProcessIdentity, expected: str) -> None:
    wait_for(f"state {expected}", lambda: state(identity) == expected, seconds=60)


@pytest.fixture(params=["interpreter", "system call"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to a process descriptor: Python's, and the one for interpreters that were built without it."""
    if request.param == "system call":
        monkeypatch.delattr(os, "pidfd_open")
        monkeypatch.delattr(signal, "pidfd_send_signal")


def test_a_process_passes_through_its_states(start: Start, way: None) -> None:
    child = start("sleep", "1000")
    identity = identify(child.pid)
    wait_state(identity, "alive")
    send_signal(identity, signal.SIGSTOP)
    wait_state(identity, "stopped")
    assert alive(identity)
    send_signal(identity, signal.SIGCONT)
    wait_state(identity, "alive")
    send_signal(identity, signal.SIGKILL)
    wait_state(identity, "zombie")
    assert not alive(identity)
    assert identify(child.pid) == identity
    assert child.wait() == -signal.SIGKILL
    assert state(identity) == "gone"
    with pytest.raises(NoSuchProcess):
        send_signal(identity, signal.SIGKILL)
    with pytest.raises(NoSuchProcess):
        identify(child.pid)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_pid_that_was_used_again_is_not_hit(start: Start, way: None, change: int) -> None:
    child = start("sleep", "1000")
    now = identify(child.pid)
    earlier = replace(now, start_time=now.start_time + change)
    assert state(earlier) == "gone"
    with pytest.raises(WrongProcess, match="its PID belongs to a process started at tick"):
        send_signal(earlier, signal.SIGKILL)
    send_signal(now, 0)
    assert alive(now)


def test_a_process_that_takes_over_the_pid_while_the_signal_is_on_its_way_is_not_hit(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = start("sleep", "1000")
    identity = identify(victim.pid)
    victim.kill()
    victim.wait()

    def start_in_a_later_tick() -> subprocess.Popen[bytes] | None:
        candidate = start("sleep", "1000")
        return candidate if identify(candidate.pid).start_time > identity.start_time else None

    bystander = wait_for("a bystander", start_in_a_later_tick, seconds=60)
    # The PID now means the bystander: for the kernel, and in /proc.
    opened: list[int] = []

    def open_bystander(pid: int) -> int:
        opened.append(pid)
        return os.pidfd_open(bystander.pid)

    monkeypatch.setattr(process, "open_pidfd", open_bystander)
    monkeypatch.setattr(process, "read_stat", lambda pid, *_: read_stat(bystander.pid if pid == victim.pid else pid))
    monkeypatch.setattr(process, "send_through", mock.Mock(side_effect=AssertionError("a signal was sent")))
    with pytest.raises(WrongProcess):
        send_signal(identity, signal.SIGKILL)
    assert opened == [victim.pid]
    assert bystander.poll() is None


def test_identities_of_another_boot_are_gone(start: Start) -> None:
    earlier = replace(identify(start("sleep", "1000").pid), boot="another")
    assert state(earlier) == "gone"
    with pytest.raises(NoSuchProcess, match="earlier boot"):
        send_signal(earlier, signal.SIGKILL)
    assert wait_ended([earlier], 20, SYSTEM_CLOCK) == []


@pytest.mark.parametrize("pid", [1, 0, -1, -12345])
def test_init_groups_and_everybody_are_refused(pid: int) -> None:
    with pytest.raises(RefusedProcess):
        send_signal(ProcessIdentity(pid, 0, "b"), signal.SIGKILL)


def test_this_process_and_its_ancestors_are_refused() -> None:
    for pid in (os.getpid(), os.getppid()):
        with pytest.raises(RefusedProcess):
            send_signal(identify(pid), 0)


def test_a_kernel_without_process_descriptors_is_named(monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    identity = identify(start("sleep", "1000").pid)
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr(pidfd, "_PIDFD_OPEN", 100_000)
    with pytest.raises(PidfdUnsupported, match=r"Linux 5\.3"):
        send_signal(identity, signal.SIGKILL)
    assert alive(identity)


def test_descriptors_are_closed_again(start: Start) -> None:
    identity = identify(start("sleep", "1000").pid)
    with contextlib.closing(os.fdopen(os.pidfd_open(identity.pid))):
        assert descriptors_of(identity.pid) == 1
    send_signal(identity, 0)
    with pytest.raises(WrongProcess):
        send_signal(replace(identity, start_time=1), 0)
    assert wait_ended([identity], 0, SYSTEM_CLOCK) == [identity]
    assert descriptors_of(identity.pid) == 0


def test_waiting_ends_when_the_last_process_has(start: Start) -> None:
    children = [start("sleep", "1000") for _ in range(3)]
    identities = [identify(child.pid) for child in children]
    send_signal(identities[0], signal.SIGKILL)
    assert wait_ended(identities[:1], 20, SYSTEM_CLOCK) == []
    assert wait_ended(identities, 0.01, SYSTEM_CLOCK) == identities[1:]
    for identity in identities:
        send_signal(identity, signal.SIGKILL)
    assert wait_ended(identities, 20, SYSTEM_CLOCK) == []
    assert {state(identity) for identity in identities} == {"zombie"}


def test_a_process_whose_first_thread_has_ended_is_alive_while_others_run(start: Start) -> None:
    code = (
        "import ctypes, platform, threading; threading.Thread(target=threading.Event().wait, daemon=True).start(); "
        "ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)"
    )
    child = start(sys.executable, "-c", code)
    identity = identify(child.pid)

    def leader_ended() -> bool:
        stat = read_stat(child.pid)
        return stat is not None and stat.state == "Z"

    wait_for("the first thread to end", leader_ended, seconds=60)
    assert state(identity) == "alive"
    assert wait_ended([identity], 0, SYSTEM_CLOCK) == [identity]
    send_signal(identity, signal.SIGKILL)
    assert wait_ended([identity], 20, SYSTEM_CLOCK) == []


@pytest.mark.parametrize("name", ["a b", ") R 1 1 (", "((", "x\ny", "1 (sleep) S"])
def test_no_name_of_a_process_confuses_its_identity(start: Start, tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.symlink_to(sys.executable)
    child = start(str(program), "-c", "import signal; signal.pause()")
    stat = read_stat(child.pid)
    assert stat is not None
    assert (stat.pid, stat.ppid, stat.session) == (child.pid, os.getpid(), child.pid)
    wait_for("exec", lambda: (now := read_stat(child.pid)) and now.comm == name[:15], seconds=60)
    assert state(identify(child.pid)) == "alive"


def test_what_is_not_a_stat_line_is_refused() -> None:
    with pytest.raises(ValueError, match="not a line of"):
        parse_stat(b"1 (x) S 1")


def test_environment_and_command_line_are_those_of_the_start(start: Start) -> None:
    child = start("sleep", "1000", EMPTY="", TEXT="a=b", RAW=os.fsdecode(b"\xff"))
    # While it is executing its program a process shows no environment, also for a moment after the call has returned.
    found = wait_for("environment", lambda: environment(child.pid), seconds=60)
    assert (found["EMPTY"], found["TEXT"], os.fsencode(found["RAW"])) == ("", "a=b", b"\xff")
    assert command_line(child.pid) == ("sleep", "1000")


def test_a_zombie_has_no_environment_and_a_missing_process_neither(start: Start) -> None:
    child = start("true")
    ended = select.poll()
    ended.register(os.pidfd_open(child.pid), select.POLLIN)
    assert ended.poll(30_000)
    assert not environment(child.pid)
    child.wait()
    assert environment(child.pid) is None
    assert command_line(child.pid) == ()


def test_of_two_entries_with_one_name_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(b"A=1\0A=2\0nonsense\0=3\0")
    assert environment(7, tmp_path) == {"A": "1"}
