"""``port-blocked`` between nodes: one port is cut off, all else passes, and it heals."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.kind import FaultMissed
from chaos.faults.network import partition, port_blocked
from chaos.faults.network.named_port import port_of
from chaos.faults.network.on_network import node_network
from chaos.platforms.network.links import Blocked
from chaos.platforms.nodes_job import NodesJob
from chaos.store.directory import RunDirectory
from tests.kit.hosts.namespace_hosts import NETWORK
from tests.unit.faults.two_nodes import (
    MISSING,
    PORT,
    REASON,
    goes_on,
    heals_after_sigkill,
    on_hosts,
    rules_left,
    steps,
    undo_all,
    victim_of,
)

pytestmark = [pytest.mark.processes, pytest.mark.skipif(bool(MISSING), reason=REASON)]

FIRST, SECOND = f"{NETWORK}.1", f"{NETWORK}.2"
TO_PORT, FROM_PORT = "to", "from"
RULES = {
    TO_PORT: (f"node 1 from port {PORT} of node 0", f"what comes from {SECOND} for port {PORT} of {FIRST}"),
    FROM_PORT: (
        f"node 0 from node 1 where it sends from port {PORT}",
        f"what comes from port {PORT} of {FIRST} for {SECOND}",
    ),
}
"""What tells of each that is left: the run's router, and the hosts themselves."""


@pytest.mark.parametrize(
    ("direction", "lost", "rules"),
    [("in", [[1, 0]], [TO_PORT]), ("both", [[1, 0], [0, 1]], [TO_PORT, FROM_PORT])],
    ids=["in", "both"],
)
def test_a_blocked_port_stops_who_needs_it_until_it_is_undone(
    direction: str, lost: list[list[int]], rules: list[str], run: RunDirectory, between_job: NodesJob
) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, rank=0, port=PORT, seconds=1, direction=direction)
    for step in port_blocked.KIND.undo_steps("first", [victim]):
        run.ledger.record(step)
    port_blocked.KIND.inject(between_job, victim)
    port_blocked.KIND.inject(between_job, victim)  # for another rank of the node
    assert port_blocked.KIND.evidence(between_job, victim) == {
        "signal": None,
        "port": PORT,
        "connections": 1,
        "lost": lost,
        "passing": lost,
        "ways": len(lost),
        "attempts": {"made": 1, "answered": 0},
        "attempts elsewhere": {"made": 1, "answered": 1},
    }
    wanted = {f"a rule that cuts {RULES[rule][on_hosts(between_job)]}" for rule in rules}
    assert (set(rules_left(between_job)), len(rules_left(between_job))) == (wanted, len(wanted))
    before = steps(run)
    SYSTEM_CLOCK.sleep(0.5)  # time in which it must not go on, by as much as what was on its way
    assert steps(run) <= before + 1
    assert port_blocked.KIND.still(between_job, victim) == {"port": PORT, "lost": lost, "ways": len(lost)}
    assert not port_blocked.KIND.ended(between_job, victim)
    message = "rules from the hosts" if on_hosts(between_job) else "rules and 0 limits from the run's network"
    assert undo_all(run, between_job) == [f"removed {len(lost)} {message}"]
    assert rules_left(between_job) == []
    assert port_blocked.KIND.ended(between_job, victim)
    assert port_blocked.KIND.still(between_job, victim)["lost"] == []
    goes_on(run)
    assert all(between_job.state(process.identity) == "alive" for process in between_job.processes())


def test_a_port_that_nobody_is_connected_with_is_none_to_block_and_disturbs_nobody(
    run: RunDirectory, between_job: NodesJob
) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, rank=0, port=PORT + 1, seconds=1)
    port_blocked.KIND.inject(between_job, victim)
    with pytest.raises(FaultMissed, match=f"have no connection with port {PORT + 1} of node 0"):
        port_blocked.KIND.evidence(between_job, victim)
    goes_on(run)


def test_where_nothing_at_all_passes_it_is_no_blocked_port(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, rank=0, port=PORT, seconds=1)
    partition.KIND.inject(between_job, replace(victim, fault="other", parameters={"seconds": 1}))
    port_blocked.KIND.inject(between_job, victim)
    assert port_blocked.KIND.evidence(between_job, victim) is None


def test_without_its_rule_nothing_is_blocked(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, rank=0, port=PORT, seconds=1)
    port_blocked.KIND.inject(between_job, replace(victim, fault="other"))
    assert port_blocked.KIND.evidence(between_job, victim) is None


@pytest.mark.parametrize(
    "change",
    [
        {"lost": []},
        {"passing": []},
        {"attempts": (1, 1)},
        {"elsewhere": (1, 0)},
    ],
    ids=["nothing lost", "nothing else passes", "it answers", "nothing answers"],
)
def test_each_part_of_the_evidence_is_needed(
    change: dict[str, Any], run: RunDirectory, network_job: NodesJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = victim_of(run, network_job, rank=0, port=PORT, seconds=1)
    seen = Blocked(connections=1, lost=[(1, 0)], passing=[(1, 0)], attempts=(1, 0), elsewhere=(1, 1))
    network = node_network(network_job)
    monkeypatch.setattr(network, "blocked", lambda *told: seen)
    assert port_blocked.KIND.evidence(network_job, victim) is not None
    monkeypatch.setattr(network, "blocked", lambda *told: replace(seen, **change))
    assert port_blocked.KIND.evidence(network_job, victim) is None


def test_a_word_means_the_port_that_the_launch_has_or_that_the_rank_has_recorded(
    run: RunDirectory, between_job: NodesJob
) -> None:
    victim = victim_of(run, between_job, rank=0, port="controller")
    assert port_of(replace(victim, ports={"controller": 20007})) == 20007
    communicator = replace(victim, parameters={"port": "communicator"})
    victim.record.touch()
    with pytest.raises(FaultMissed, match="rank 0 has recorded no port"):
        port_of(communicator)
    events = [{"event": "communicator.joined", "port": port} for port in (40001, 40002)]
    victim.record.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert port_of(communicator) == 40002


def test_after_a_killed_harness_nothing_of_it_is_left(run: RunDirectory) -> None:
    seen, done = heals_after_sigkill(run, "port-blocked", rank=0, port=PORT, seconds=1)
    assert "'lost': [[1, 0]]" in seen
    assert len(done) == 1
