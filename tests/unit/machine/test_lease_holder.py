"""Who has to wait for cores is told who holds them, since when, and how to go on."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.base.clock import Clock
from chaos.base.wait import DeadlineExpired, Patience
from chaos.machine.lease_holder import in_words, read_holder, this_holder
from chaos.machine.leases import Leases

OTHER = """
import sys
from pathlib import Path
from chaos.machine.leases import Leases
from chaos.base.wait import Patience
lease = Leases(Path(sys.argv[1]), cores=range(2)).take_cores(2, wait=Patience(60))
lease.name_run("/reports/rsc-1")
print("taken", flush=True)
sys.stdin.read()
"""
PATIENT = Patience(60)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@contextmanager
def another(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds both cores."""
    command = [sys.executable, "-c", OTHER, str(directory), "--password", "hidden"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == "taken\n"
            yield other
        finally:
            other.kill()


def blocked(directory: Path, clock: Clock) -> str:
    """What a run is told that needs a core and gets none."""
    entries: list[str] = []
    with pytest.raises(DeadlineExpired):
        Leases(directory, cores=range(2)).take_cores(1, wait=Patience(1, clock), blocked=entries.append)
    (said,) = entries
    return said


def test_it_names_command_process_run_user_and_time_and_says_how_to_go_on(directory: Path, clock: Clock) -> None:
    with another(directory) as other:
        said = blocked(directory, clock)
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert f"cores 0, 1 by process {other.pid} of user {user} since " in said
    assert re.search(r"since \d\d:\d\d:\d\d \(\d+ (s|min)\): ", said)
    assert sys.executable in said and ", run /reports/rsc-1." in said
    assert f"--jobs of chaos soak, -n of pytest), or end a run in order: kill -INT {other.pid}" in said
    assert "hidden" not in said


def test_a_holder_that_was_killed_is_not_named(directory: Path) -> None:
    with another(directory):
        pass
    assert read_holder(directory / "core-0.holder") is None
    lease = Leases(directory, cores=range(2)).take_cores(2, wait=PATIENT)
    found = read_holder(directory / "core-1.holder")
    assert found is not None and found.pid == os.getpid()
    lease.release()
    assert not list(directory.glob("*.holder"))


def drop(record: Path) -> None:
    record.unlink()


def tear(record: Path) -> None:
    record.write_text('{"pid": 1, ')


def reuse_pid(record: Path) -> None:
    record.write_text(json.dumps({**json.loads(record.read_text()), "start_time": 1}))


def other_form(record: Path) -> None:
    record.write_text('{"pid": "x", "of": "a later version"}')


@pytest.mark.parametrize("spoil", [drop, tear, reuse_pid, other_form])
def test_without_a_record_that_can_be_believed_nobody_is_named(
    directory: Path, clock: Clock, spoil: Callable[[Path], None]
) -> None:
    lease = Leases(directory, cores=range(2)).take_cores(2, wait=PATIENT)
    for number in range(2):
        spoil(directory / f"core-{number}.holder")
    said = blocked(directory, clock)
    assert "cores 0, 1 by a process that has left no record" in said and "kill" not in said
    lease.release()


def test_several_holders_are_told_each_with_its_cores() -> None:
    first = replace(this_holder(), pid=11, user="ann", since=1000.0, command="chaos run a", run="r1")
    second = replace(first, pid=12, user="bob", since=940.0, command="x" * 500, run="")
    said = in_words("core", {0: first, 1: second, 3: first}, 1042.0)
    assert "cores 0, 3 by process 11 of user ann since " in said and "(42 s): chaos run a, run r1; core 1 by" in said
    assert f"(1 min): {'x' * 200}…. This run starts when one is free." in said
    assert said.endswith("kill -INT 11 or kill -INT 12")
