"""Fixtures of tests that need a run of this process: its directory, owned or let go of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.machine.job.ending import end_processes
from chaos.machine.job.processes import find_run_processes
from chaos.store.directory import RunDirectory, create_run


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def run(reports: Path) -> Iterator[RunDirectory]:
    """A run that this process owns. Its processes are ended after the test."""
    made = create_run(reports, "kill-rank")
    yield made
    made.lock.release()
    end_processes(lambda: find_run_processes(made.token), grace_seconds=0, clock=SYSTEM_CLOCK)


@pytest.fixture
def dead(run: RunDirectory) -> RunDirectory:
    """A run whose harness has let go of it."""
    run.lock.release()
    return run
