"""A node that has gone is a fact about its processes; a remote helper that is lost while its node runs is an error."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.machine.job.processes import NODE_VARIABLE
from chaos.machine.job.protocol import HelperLost, PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import identify
from chaos.machine.remote.client import HelperClient
from chaos.platforms import nodes_job as nodes_module
from chaos.platforms.nodes import NodeState
from chaos.platforms.nodes_job import NodesJob, ranks_of
from tests.unit.machine.conftest import Spec, StartHelper

pytestmark = pytest.mark.processes


@dataclass
class FakeNode:
    """A node whose state the test decides."""

    number: int
    helper: HelperClient
    private: Path = Path("/nowhere")
    address: str = "127.0.0.1"
    known: NodeState = "running"
    now: NodeState = "running"
    place: Mapping[str, Any] = field(default_factory=dict)
    node_network: None = None
    last: ExitStatus = field(default_factory=ExitStatus)
    silences: int = 0
    """How many times its platform does not answer first."""

    def state(self) -> NodeState:
        if self.silences:
            self.silences -= 1
            raise PlatformError("the API server does not answer")
        return self.now

    def ended(self) -> ExitStatus:
        return self.last


@pytest.fixture
def two(start_helper: StartHelper) -> list[FakeNode]:
    return [FakeNode(number, start_helper(number)) for number in range(2)]


@pytest.fixture
def job(two: list[FakeNode], spec: Spec) -> NodesJob:
    one = spec("exec sleep 1000")
    specs = [replace(one, environment={**one.environment, NODE_VARIABLE: str(node.number)}) for node in two]
    return NodesJob(two, specs, SYSTEM_CLOCK)


def kill_helper(node: FakeNode) -> None:
    os.kill(node.helper.introduction.pid, signal.SIGKILL)
    wait_for("loss", lambda: node.helper.lost, seconds=60)


def test_it_has_a_launcher_on_each_node_and_knows_which_process_is_where(job: NodesJob) -> None:
    assert [launcher.node for launcher in job.launchers] == [0, 1]
    assert {process.identity for process in job.processes()} == set(job.launchers)
    job.signal(job.launchers[1], signal.SIGKILL)
    assert wait_for("exit", lambda: job.exit_status(job.launchers[1]), seconds=60) == ExitStatus(signal=9)
    assert job.exit_status(job.launchers[0]) is None


def test_the_same_process_without_its_node_is_none_of_the_jobs(job: NodesJob) -> None:
    with pytest.raises(PlatformError, match="is on none of the job's nodes"):
        job.signal(replace(job.launchers[1], node=None), signal.SIGKILL)
    with pytest.raises(PlatformError, match="is on none of the job's nodes"):
        job.signal(identify(os.getpid()), signal.SIGKILL)


def test_processes_of_a_node_that_has_gone_have_ended_as_it_did(job: NodesJob, two: list[FakeNode]) -> None:
    two[1].now, two[1].last = "gone", ExitStatus(signal=9)
    kill_helper(two[1])
    assert job.exit_status(job.launchers[1]) == ExitStatus(signal=9)
    assert job.state(job.launchers[1]) == "gone"
    assert [process.identity for process in job.processes()] == [job.launchers[0]]
    with pytest.raises(PlatformError, match="node 1 is gone"):
        job.signal(job.launchers[1], signal.SIGCONT)


def test_a_helper_lost_on_a_node_that_runs_is_an_error(
    job: NodesJob, two: list[FakeNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes_module, "_SETTLE_SECONDS", 0.01)
    kill_helper(two[1])
    with pytest.raises(HelperLost, match="node 1"):
        job.processes()
    left = job.stop(5.0)
    assert [process.identity for process in left.ended] == [job.launchers[0]]


def test_a_platform_that_does_not_answer_at_once_is_asked_again(job: NodesJob, two: list[FakeNode]) -> None:
    two[1].now, two[1].last, two[1].silences = "gone", ExitStatus(signal=9), 3
    kill_helper(two[1])
    assert job.exit_status(job.launchers[1]) == ExitStatus(signal=9)


def test_a_platform_that_does_not_answer_leaves_the_node_unknown(
    job: NodesJob, two: list[FakeNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes_module, "_SETTLE_SECONDS", 0.01)
    two[1].silences = 1_000_000
    kill_helper(two[1])
    with pytest.raises(HelperLost, match="so was its platform: the API server does not answer"):
        job.processes()
    left = job.stop(5.0)
    assert [process.identity for process in left.ended] == [job.launchers[0]]


def test_nobody_is_asked_on_a_frozen_node(job: NodesJob, two: list[FakeNode]) -> None:
    before = job.processes()
    two[1].known = two[1].now = "frozen"
    os.kill(two[1].helper.introduction.pid, signal.SIGSTOP)
    try:
        assert job.processes() == before
        assert job.exit_status(job.launchers[1]) is None
        assert job.state(job.launchers[1]) == "stopped"
    finally:
        os.kill(two[1].helper.introduction.pid, signal.SIGCONT)


def test_ranks_are_spread_over_the_nodes_evenly_and_in_order() -> None:
    assert [ranks_of(node, 2, 4) for node in range(2)] == [(0, 1), (2, 3)]
