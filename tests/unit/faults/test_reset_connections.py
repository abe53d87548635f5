"""``connection-reset`` between nodes: both ends are told, and nothing else is touched."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.faults.kind import FaultMissed
from chaos.faults.network import connection_reset
from chaos.faults.network.on_network import node_network
from chaos.machine.linux.net import connections
from chaos.machine.linux.net.connections import Connection, established, reset
from chaos.platforms.network.router import Router
from chaos.platforms.nodes_job import NodesJob
from chaos.store.directory import RunDirectory
from tests.unit.faults.two_nodes import MISSING, PORT, REASON, goes_on, heals_after_sigkill, undo_all, victim_of

LACKING = [*MISSING, *(result for result in probe(("connection-reset",), Machine()) if not result.ok)]
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(bool(LACKING), reason=f"{REASON} {LACKING and LACKING[0].seen}"),
]


def _tells(log: Path, number: int) -> bool:
    return f"[Errno {number}]" in log.read_text()


@pytest.mark.parametrize("node", [0, 1], ids=["listens", "has called"])
def test_the_connection_is_gone_at_both_ends_and_each_is_told(
    node: int, run: RunDirectory, between_job: NodesJob
) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, rank=node, port=PORT)
    connection_reset.KIND.inject(between_job, victim)
    shown = wait_for(
        "evidence", lambda: connection_reset.KIND.evidence(between_job, victim), seconds=60, clock=SYSTEM_CLOCK
    )
    (one,) = shown["reset"]
    network = node_network(between_job)
    assert (one["source"], one["target"]) == (network.address(node), network.address(1 - node))
    assert (one["source_port"] if node == 0 else one["target_port"]) == PORT
    assert one["confirmed"] is True and one["inode"] and one["cookie"] != one["other cookie"]
    assert (shown["port"], shown["left"]) == (PORT, 0)
    # These ranks know nothing better than to end with the error, so that it is seen who got which.
    logs = [run.path / f"log-{rank}" for rank in (0, 1)]
    ends = (errno.ECONNABORTED, errno.ECONNRESET)
    for log, number in zip(logs, ends if node == 0 else reversed(ends), strict=True):
        wait_for("the end of a rank", partial(_tells, log, number), seconds=60, clock=SYSTEM_CLOCK)
    assert undo_all(run) == []


def test_a_second_rank_of_the_node_resets_nothing_again(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, port=PORT)
    connection_reset.KIND.inject(between_job, victim)
    connection_reset.KIND.inject(between_job, victim)  # there is none left: it would be missed
    shown = wait_for(
        "evidence", lambda: connection_reset.KIND.evidence(between_job, victim), seconds=60, clock=SYSTEM_CLOCK
    )
    assert len(shown["reset"]) == 1


def test_a_connection_of_another_port_is_not_touched(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, port=PORT + 1)
    with pytest.raises(FaultMissed, match=f"node 1 has no connection of port {PORT + 1} with nodes"):
        connection_reset.KIND.inject(between_job, victim)
    goes_on(run)


def test_one_that_the_kernel_has_confirmed_and_still_has_is_no_evidence(
    run: RunDirectory, between_job: NodesJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, port=PORT)
    monkeypatch.setattr(node_network(between_job), "reset", lambda node, one: True)
    connection_reset.KIND.inject(between_job, victim)
    assert connection_reset.KIND.evidence(between_job, victim) is None
    goes_on(run)


def test_a_cookie_is_that_of_one_kernel_only(
    run: RunDirectory, between_job: NodesJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on(run)
    victim, network = victim_of(run, between_job, port=PORT), node_network(between_job)
    connection_reset.KIND.inject(between_job, victim)
    shown = wait_for(
        "evidence", lambda: connection_reset.KIND.evidence(between_job, victim), seconds=60, clock=SYSTEM_CLOCK
    )
    (one,) = shown["reset"]

    def open_now(source: str, cookie: int) -> None:
        still = [Connection(source, 1, "192.0.2.1", 2, 0, cookie, 3)]
        monkeypatch.setattr(network, "established", lambda node, *, of_run: still)

    for own, other in (("source", "target"), ("target", "source")):
        cookie = one["cookie" if own == "source" else "other cookie"]
        open_now(one[other], cookie)
        assert connection_reset.KIND.evidence(between_job, victim) == shown, "it is another kernel's"
        open_now(one[own], cookie)
        assert connection_reset.KIND.evidence(between_job, victim) is None


def test_a_kernel_that_refuses_is_a_fault_that_was_missed(
    run: RunDirectory, network_job: NodesJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on(run)
    victim = victim_of(run, network_job, port=PORT)
    monkeypatch.setattr(connections, "send_request", lambda *arguments: errno.EOPNOTSUPP)
    with pytest.raises(FaultMissed, match="cannot be reset: Operation not supported"):
        connection_reset.KIND.inject(network_job, victim)


def test_a_connection_that_is_gone_is_not_confirmed(run: RunDirectory, network_job: NodesJob) -> None:
    goes_on(run)
    router = network_job.node(1).node_network
    assert isinstance(router, Router)
    namespace = router.namespace(1)
    (connection,) = established(namespace)
    assert not reset(namespace, replace(connection, source_port=1))
    assert established(namespace) == [connection]
    assert (reset(namespace, connection), reset(namespace, connection)) == (True, False)


@pytest.fixture
def without_support(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kernel that lists connections and resets none."""
    monkeypatch.setattr(connections, "send_request", lambda *arguments: errno.EOPNOTSUPP)
    yield


def test_the_doctor_tells_of_a_kernel_that_resets_none(without_support: None) -> None:
    (found,) = probe(("connection-reset",), Machine())
    assert (found.ok, found.seen) == (False, "Operation not supported")
    assert "CONFIG_INET_DIAG_DESTROY" in found.advice


def test_after_a_killed_harness_nothing_of_it_is_left(run: RunDirectory) -> None:
    seen, done = heals_after_sigkill(run, "connection-reset", rank=1, port=PORT)
    assert "'confirmed': True" in seen
    assert done == [], "there is nothing to put back"
