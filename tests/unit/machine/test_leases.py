"""No port, core or device is ever given to two holders, and a holder that dies gives back."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import pytest

from chaos.base.clock import Clock
from chaos.base.wait import DeadlineExpired, Patience, wait_for
from chaos.machine import leases as leases_module
from chaos.machine.host_claims import Claims
from chaos.machine.leases import LeaseError, Leases, default_directory
from tests.unit.conftest import Start

T = TypeVar("T")

OWN = (29_801, 29_802)
"""Ports of these tests, in a directory of leases of their own."""

HOLDER = """
import sys
from pathlib import Path
from chaos.machine.leases import Leases
from chaos.base.wait import Patience
leases = Leases(Path(sys.argv[1]), cores=range(int(sys.argv[2])))
cores = leases.take_cores(int(sys.argv[3]), wait=Patience(60))
ports = leases.take_ports(3)
print(*cores.numbers, *ports.numbers, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.fixture
def leases(directory: Path) -> Leases:
    return Leases(directory, cores=range(2))


PATIENT = Patience(60)


def test_two_jobs_on_two_cores_run_at_the_same_time_and_share_none(leases: Leases, directory: Path) -> None:
    first = leases.take_cores(1, wait=PATIENT)
    second = Leases(directory, cores=range(2)).take_cores(1, wait=PATIENT)
    assert {first.numbers, second.numbers} == {(0,), (1,)}


@pytest.fixture
def claims() -> Claims:
    """Claims as all users of a host share them, of this test's own."""
    return Claims(f"test-{os.getpid()}-{secrets.token_hex(8)}")


def test_what_a_harness_of_another_user_has_is_given_to_nobody_else(tmp_path: Path, claims: Claims) -> None:
    one = Leases(tmp_path / "one", cores=range(2), claims=claims)
    other = Leases(tmp_path / "other", cores=range(2), claims=claims)
    with one.take_ports(1, ports=OWN) as ports, other.take_ports(1, ports=OWN) as others:
        assert {*ports.numbers, *others.numbers} == set(OWN)
        with pytest.raises(LeaseError, match="only 0 were found"):
            one.take_ports(1, ports=OWN)
    with one.take_cores(1, wait=PATIENT) as core, other.take_cores(1, up_to=2, wait=PATIENT) as rest:
        assert {core.numbers, rest.numbers} == {(0,), (1,)}
    with one.take_devices([3], wait=PATIENT), pytest.raises(DeadlineExpired):
        other.take_devices([3], wait=Patience(0))
    with other.take_devices([3], wait=PATIENT) as device:
        assert device.numbers == (3,)


def test_leases_of_the_host_are_claimed_among_all_users(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    monkeypatch.setattr(leases_module, "default_directory", lambda: directory)
    with Leases().take_ports(1, ports=OWN) as lease:
        assert Claims().claim(f"port-{lease.numbers[0]}") is None
    again = Claims().claim(f"port-{OWN[0]}")
    assert again is not None
    again.close()


def test_a_claim_that_the_kernel_refuses_is_an_error_of_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(Claims):
        def claim(self, name: str) -> socket.socket | None:
            raise OSError(errno.EPERM, "Operation not permitted")

    leases = Leases(tmp_path / "own", claims=Refused())
    with pytest.raises(LeaseError, match="port-29801 cannot be claimed on this host: Operation not permitted"):
        leases.take_ports(1, ports=OWN)
    # Its lock was given back.
    with Leases(tmp_path / "own").take_ports(1, ports=OWN) as lease:
        assert lease.numbers == OWN[:1]


def test_a_third_job_waits_under_a_named_deadline_and_is_told_once(leases: Leases, clock: Clock) -> None:
    lease = leases.take_cores(2, wait=PATIENT)
    entries: list[str] = []
    with pytest.raises(DeadlineExpired, match="deadline 'a free core' of 5 s has expired"):
        leases.take_cores(1, wait=Patience(5, clock), blocked=entries.append)
    (said,) = entries
    assert "every core that would do is leased to another job on this host: cores 0, 1 by process" in said
    lease.release()
    lease.release()
    assert leases.take_cores(1, wait=PATIENT).numbers == (0,)


def test_a_job_takes_more_cores_only_if_they_are_free(leases: Leases) -> None:
    with leases.take_cores(1, up_to=8, wait=PATIENT) as lease:
        assert lease.numbers == (0, 1)
    with leases.take_cores(1, wait=PATIENT), leases.take_cores(1, up_to=2, wait=PATIENT) as rest:
        assert rest.numbers == (1,)


@pytest.mark.parametrize("count", [0, 3])
def test_cores_that_do_not_exist_are_not_waited_for(leases: Leases, count: int) -> None:
    with pytest.raises(LeaseError, match="this process may use 2"):
        leases.take_cores(count, wait=PATIENT)


def test_a_job_that_needs_all_cores_is_not_overtaken_and_takes_none_while_it_waits(
    leases: Leases, directory: Path, clock: Clock
) -> None:
    held = leases.take_cores(1, wait=PATIENT)
    looks = 0

    def wait_with_others_looking(name: str, condition: Callable[[], T | None], /) -> T:
        nonlocal looks

        def look() -> T | None:
            nonlocal looks
            looks += 1
            found = condition()
            if found is None:
                # Core 1 is free and yet nobody else gets it now: this job is next.
                with pytest.raises(DeadlineExpired):
                    Leases(directory, cores=range(2)).take_cores(1, wait=Patience(0.1, clock))
                held.release()
            return found

        return wait_for(name, look, seconds=60)

    with leases.take_cores(2, wait=wait_with_others_looking) as lease:
        assert lease.numbers == (0, 1)
    assert looks == 2
    assert leases.take_cores(2, wait=PATIENT).numbers == (0, 1), "the turn was given back"


def test_devices_are_leased_all_or_none(leases: Leases, clock: Clock) -> None:
    held = leases.take_devices([3], wait=PATIENT)
    with pytest.raises(DeadlineExpired, match="a free device"):
        leases.take_devices([2, 3], wait=Patience(1, clock))
    with leases.take_devices([2, 2], wait=PATIENT) as lease:
        assert lease.numbers == (2,)
    held.release()
    assert leases.take_devices([2, 3], wait=PATIENT).numbers == (2, 3)


def test_ports_are_disjoint_and_below_those_for_outgoing_connections(leases: Leases, directory: Path) -> None:
    first, second = leases.take_ports(4), Leases(directory).take_ports(4)
    assert len({*first.numbers, *second.numbers}) == 8
    assert all(20000 <= port < 30000 for port in first.numbers + second.numbers)


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ports that the kernel picked, so that no other test run on this host looks at them, and that may be leased."""
    monkeypatch.setattr(leases_module, "_ephemeral_ports", lambda: range(0))
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(3)]
        for probe in probes:
            probe.bind(("0.0.0.0", 0))
        return [probe.getsockname()[1] for probe in probes]


def test_a_leased_port_can_be_bound(leases: Leases, unused: list[int]) -> None:
    for port in leases.take_ports(2, ports=unused).numbers:
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_that_somebody_uses_is_passed_over(leases: Leases, unused: list[int], address: str) -> None:
    used, free, _ = unused
    with socket.socket() as server:
        server.bind((address, used))
        server.listen()
        assert leases.take_ports(1, ports=[used, free]).numbers == (free,)
    assert leases.take_ports(1, ports=[used]).numbers == (used,), "its lease was not kept"


def test_ports_for_outgoing_connections_are_not_given(leases: Leases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases_module, "_ephemeral_ports", lambda: range(20000, 29990))
    assert leases.take_ports(2).numbers[0] >= 29990


def test_too_few_ports_are_an_error_and_nothing_is_kept(leases: Leases, unused: list[int]) -> None:
    with pytest.raises(LeaseError, match="4 free ports are needed and only 3 were found"):
        leases.take_ports(4, ports=unused)
    assert leases.take_ports(3, ports=unused).numbers == tuple(unused)


def read_numbers(stream: IO[str] | None) -> list[int]:
    assert stream is not None
    return [int(number) for number in stream.readline().split()]


def test_processes_share_nothing_and_sigkill_gives_back(directory: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(directory), "4", "1"]
    start = partial(subprocess.Popen, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holders = [start() for _ in range(4)]
    try:
        numbers = [read_numbers(holder.stdout) for holder in holders]
        assert sorted(taken[0] for taken in numbers) == [0, 1, 2, 3]
        ports = [port for taken in numbers for port in taken[1:]]
        assert len(set(ports)) == 12
        holders[0].kill()
        (core,) = Leases(directory, cores=range(4)).take_cores(1, wait=PATIENT).numbers
        assert core == numbers[0][0]
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def test_a_child_does_not_inherit_a_lease(leases: Leases, directory: Path) -> None:
    lease = leases.take_cores(2, wait=PATIENT)
    held = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed since it was listed, or of a name too long to be told
            if entry.readlink().is_relative_to(directory):
                held.append(int(entry.name))
    assert len(held) == 2
    assert all(fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for descriptor in held)
    child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    try:
        lease.release()
        assert leases.take_cores(2, wait=PATIENT).numbers == (0, 1)
    finally:
        child.kill()
        child.wait()


def test_a_lease_taken_in_one_thread_is_released_in_another(leases: Leases) -> None:
    lease = leases.take_cores(2, wait=PATIENT)
    thread = threading.Thread(target=lease.release)
    thread.start()
    thread.join()
    assert leases.take_cores(2, wait=PATIENT).numbers == (0, 1)


def test_a_directory_that_cannot_be_trusted_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.symlink_to(directory.parent)
    with pytest.raises(LeaseError, match="a link is not trusted"):
        Leases(directory)
    directory.unlink()
    directory.write_text("")
    with pytest.raises(LeaseError, match="cannot be used"):
        Leases(directory)
    directory.unlink()
    Leases(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.chmod(0o750)
    with pytest.raises(LeaseError, match=re.escape("is open to others (mode 750)")):
        Leases(directory)
    directory.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(LeaseError, match="belongs to user"):
        Leases(directory)


def test_a_link_in_the_directory_is_not_followed(leases: Leases, directory: Path, tmp_path: Path) -> None:
    (directory / "core-turn.lock").symlink_to(tmp_path / "target")
    with pytest.raises(LeaseError, match="cannot be locked"):
        leases.take_cores(1, wait=PATIENT)
    assert not (tmp_path / "target").exists()


def test_a_file_system_without_flock_is_refused(leases: Leases, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LeaseError, match="has no flock"):
        leases.take_cores(1, wait=PATIENT)


def test_all_harnesses_of_a_user_meet_in_one_place_whatever_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    before = default_directory()
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    assert default_directory() == before
    assert str(os.geteuid()) in str(before)


def test_a_port_of_a_killed_harness_is_nobody_elses_while_its_job_lives(
    leases: Leases, directory: Path, start: Start, token: str
) -> None:
    """Its ranks may begin to listen only then: that nobody listens proves nothing."""
    killed = "import sys, pathlib, os\nfrom chaos.machine.leases import Leases\n"
    killed += "lease = Leases(pathlib.Path(sys.argv[1])).take_ports(1, run=sys.argv[2], ports=PORTS)\nos._exit(9)\n"
    program = killed.replace("PORTS", repr(list(OWN)))
    assert subprocess.run([sys.executable, "-c", program, str(directory), token]).returncode == 9
    job = start("sleep", "1000", run=token)
    with leases.take_ports(1, ports=OWN) as other:
        assert other.numbers == OWN[1:]
    job.kill()
    job.wait()
    with leases.take_ports(1, run="another", ports=OWN) as again:
        assert again.numbers == OWN[:1]


def test_a_port_that_was_given_back_too_early_stays_its_runs(leases: Leases, start: Start, token: str) -> None:
    """The teardown could not end a process."""
    job = start("sleep", "1000", run=token)
    leases.take_ports(1, run=token, ports=OWN).release()
    with leases.take_ports(1, ports=OWN) as other:
        assert other.numbers == OWN[1:]
    job.kill()
    job.wait()
    assert leases.take_ports(1, ports=OWN).numbers == OWN[:1]


def test_no_name_is_left_of_a_run_that_has_ended(leases: Leases, directory: Path) -> None:
    leases.take_ports(2, run="ended", ports=OWN).release()
    assert list(directory.glob("*.run")) == []
