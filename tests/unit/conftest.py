"""Fixtures that several rooms' tests use."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.machine.job.ending import end_processes
from chaos.machine.job.processes import RUN_VARIABLE, find_run_processes
from tests.kit.deep_directory import DeepDirectories, deep_directory
from tests.kit.examples import load_profile

load_profile()

# Proofs of runs are made with a key of the tests' own, here and in the processes that tests start.
os.environ["CHAOS_KEY"] = "5eed" * 16


class FakeClock:
    """Time that passes only when somebody sleeps, and a nanosecond for every look at it."""

    def __init__(self) -> None:
        self.now = 1_000_000_000_000

    def mono(self) -> int:
        self.now += 1
        return self.now

    def wall(self) -> int:
        return 1_700_000_000_000_000_000 + self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1e9)


@pytest.fixture
def clock() -> Clock:
    return FakeClock()


@pytest.fixture
def token() -> Iterator[str]:
    """A CHAOS_RUN value of this test's own. Whatever carries it is ended afterwards."""
    yield from _own_run()


@pytest.fixture
def other_token() -> Iterator[str]:
    """Another run's CHAOS_RUN value, ended afterwards too."""
    yield from _own_run()


def _own_run() -> Iterator[str]:
    value = f"unit-{os.getpid()}-{secrets.token_hex(8)}"
    yield value
    end_processes(lambda: find_run_processes(value), grace_seconds=0, clock=SYSTEM_CLOCK)


MakeDeep = Callable[..., Path]


@pytest.fixture(scope="session")
def deep_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeepDirectories]:
    """What tests borrow of very deep directories. They are removed before pytest's own clearing up, which recurses."""
    directories = DeepDirectories(tmp_path_factory.mktemp("deep"))
    yield directories
    directories.close()


@pytest.fixture
def make_deep(deep_directories: DeepDirectories) -> Iterator[MakeDeep]:
    """``make_deep(place)``: very deep directories below ``place``; ``make_deep(place, levels, name)``: just so many."""
    with ExitStack() as made:
        yield lambda place, *how: made.enter_context(
            deep_directory(place, *how) if how else deep_directories.lent(place)
        )


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a process: ``start("sleep", "1000", run=token, MS_ROLE="MS_SCHED")``. It is ended after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str, run: str | None = None, session: bool = True, **variables: str) -> subprocess.Popen[bytes]:
        environment = {"PATH": os.environ["PATH"], **variables}
        if run is not None:
            environment[RUN_VARIABLE] = run
        process = subprocess.Popen(
            argv, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, start_new_session=session
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
