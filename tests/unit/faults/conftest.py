"""A run with a job whose only process is its launcher, to lay faults on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.faults.kind import Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_open_steps, undo_step
from chaos.history.ledger import UndoStep
from chaos.machine.job.local import LocalJob, LocalPlatform
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.mounts import mounts_at, unmount
from chaos.machine.linux.procfs import environment
from chaos.platforms.nodes_job import NodesJob
from chaos.store.directory import RunDirectory, create_run
from tests.kit.hosts.namespace_hosts import two_hosts
from tests.kit.spread import daily
from tests.unit.faults.two_nodes import begin, start

Undo = Callable[[RunDirectory, UndoStep], str]


def started(spec: LaunchSpec) -> LocalJob:
    """A job whose process can be told for the run's: the kernel shows its environment some time after its start."""
    job = LocalPlatform().start(spec)
    wait_for("environment", lambda: environment(job.launcher.pid), seconds=30, clock=SYSTEM_CLOCK)
    return job


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    made = create_run(tmp_path / "reports", "storage")
    (made.path / "job").mkdir()
    yield made
    made.lock.release()


@pytest.fixture
def storage(run: RunDirectory) -> Iterator[Path]:
    """Where the job would save. Whatever a failed test has left there is unmounted."""
    path = run.path.resolve() / "job" / "check points"
    yield path
    while mounts_at(path):
        unmount(path)


@pytest.fixture
def job(run: RunDirectory, tmp_path: Path) -> Iterator[LocalJob]:
    spec = LaunchSpec(run.token, "train", ("sleep", "1000"), {"PATH": "/usr/bin:/bin"}, tmp_path, tmp_path / "log")
    job = started(spec)
    yield job
    job.stop(0)


@pytest.fixture
def victim(job: LocalJob, storage: Path, tmp_path: Path) -> Victim:
    return Victim(0, job.launcher, tmp_path / "record", storage=storage)


@pytest.fixture
def network_job(run: RunDirectory) -> Iterator[NodesJob]:
    """Two ranks, each on a node with a network of its own."""
    (run.path / "history").mkdir(exist_ok=True)
    nodes, job = begin(run)
    yield job
    job.stop(0)
    nodes.close()
    undone = undo_open_steps(run.ledger, UNDO_ACTIONS, UndoContext(run.token, SYSTEM_CLOCK))
    assert [outcome.how for outcome in undone if not outcome.ok] == []


@pytest.fixture(params=daily(["router", "hosts"], "router"))
def between_job(run: RunDirectory, request: pytest.FixtureRequest) -> Iterator[NodesJob]:
    """The same, behind a router of the run, and then on hosts that reach each other by themselves."""
    if request.param == "router":
        yield request.getfixturevalue("network_job")
        return
    (run.path / "history").mkdir(exist_ok=True)
    with two_hosts(run.token) as hosts:
        job = start(run, hosts)
        yield job
        job.stop(0)


@pytest.fixture
def undo() -> Undo:
    """Undo a step of a run, which must be possible; returns how."""

    def act(run: RunDirectory, step: UndoStep) -> str:
        undone = undo_step(run.ledger, step, UNDO_ACTIONS, UndoContext(run.token, SYSTEM_CLOCK))
        assert undone.ok, undone.how
        return undone.how

    return act
