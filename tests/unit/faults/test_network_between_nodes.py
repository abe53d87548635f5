"""Faults of the network between nodes that have networks of their own: they land, the traffic stops, and it heals."""

from __future__ import annotations

import signal

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.network import network_delay, network_loss, network_rate, partition
from chaos.machine.linux.process import has_ended
from chaos.platforms.nodes_job import NodesJob
from chaos.store.directory import RunDirectory
from tests.kit.spread import at_night
from tests.unit.faults.two_nodes import (
    MISSING,
    REASON,
    goes_on,
    heals_after_sigkill,
    on_hosts,
    rules_left,
    steps,
    undo_all,
    victim_of,
)

(IMPAIRMENT,) = probe(("impairment",), Machine())
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(bool(MISSING) or not IMPAIRMENT.ok, reason=f"{REASON} {IMPAIRMENT.seen}"),
]


@pytest.mark.parametrize(
    ("direction", "lost"),
    [
        ("both", [[1, 0], [0, 1]]),
        ("out", [[1, 0]]),
        pytest.param("in", [[0, 1]], marks=pytest.mark.nightly),
    ],
    ids=["both", "out", "in"],
)
def test_a_partition_stops_the_ranks_until_it_is_undone(
    direction: str, lost: list[list[int]], run: RunDirectory, between_job: NodesJob
) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, seconds=1, direction=direction)
    for step in partition.KIND.undo_steps("first", [victim]):
        run.ledger.record(step)
    partition.KIND.inject(between_job, victim)
    partition.KIND.inject(between_job, victim)  # for another rank of the node
    shown = wait_for("evidence", lambda: partition.KIND.evidence(between_job, victim), seconds=60, clock=SYSTEM_CLOCK)
    echoes = {"sent": 2, "answered": 0}
    assert shown == {"signal": None, "lost": lost, "ways": len(lost), "connections": 1, "echoes": echoes}
    assert not partition.KIND.ended(between_job, victim)
    assert len(rules_left(between_job)) == len(lost)
    assert all("a rule that cuts" in leftover for leftover in rules_left(between_job))
    before = steps(run)
    SYSTEM_CLOCK.sleep(0.5)  # time in which it must not go on, by as much as what was on its way
    assert steps(run) <= before + 1
    message = "rules from the hosts" if on_hosts(between_job) else "rules and 0 limits from the run's network"
    assert undo_all(run, between_job) == [f"removed {len(lost)} {message}"]
    assert rules_left(between_job) == []
    assert partition.KIND.ended(between_job, victim)
    goes_on(run)
    assert all(between_job.state(process.identity) == "alive" for process in between_job.processes())


def test_a_rate_is_shown_by_what_was_sent_at_it(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, kbit=256)
    for step in network_rate.KIND.undo_steps("first", [victim]):
        run.ledger.record(step)
    network_rate.KIND.inject(between_job, victim)
    shown = wait_for(
        "evidence", lambda: network_rate.KIND.evidence(between_job, victim), seconds=60, clock=SYSTEM_CLOCK
    )
    assert shown["kbit"] == 256 and shown["bytes"] > 0
    goes_on(run)
    message = "1 rules from the hosts" if on_hosts(between_job) else "0 rules and 1 limits from the run's network"
    assert undo_all(run, between_job) == [f"removed {message}"]
    assert network_rate.KIND.ended(between_job, victim)


def test_a_loss_is_shown_by_echoes_that_do_not_come_back(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, percent=10)
    for step in network_loss.KIND.undo_steps("first", [victim]):
        run.ledger.record(step)
    network_loss.KIND.inject(between_job, victim)
    network_loss.KIND.inject(between_job, victim)  # for another rank of the node
    shown = wait_for(
        "evidence", lambda: network_loss.KIND.evidence(between_job, victim), seconds=60, clock=SYSTEM_CLOCK
    )
    assert (shown["sent"], 0 < shown["lost"] < 60) == (200, True), shown
    assert shown["passed"] > 0
    goes_on(run)
    assert len(rules_left(between_job)) == 1
    undo_all(run, between_job)
    assert rules_left(between_job) == []
    assert network_loss.KIND.ended(between_job, victim)


def test_a_delay_is_shown_by_how_long_echoes_take(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, milliseconds=30, jitter=5)
    if on_hosts(between_job) and "relay" in IMPAIRMENT.seen:
        with pytest.raises(FaultMissed, match="the kernel has no netem"):
            network_delay.KIND.inject(between_job, victim)
        goes_on(run)
        return
    for step in network_delay.KIND.undo_steps("first", [victim]):
        run.ledger.record(step)
    network_delay.KIND.inject(between_job, victim)
    network_delay.KIND.inject(between_job, victim)  # for another rank of the node
    shown = wait_for(
        "evidence", lambda: network_delay.KIND.evidence(between_job, victim), seconds=60, clock=SYSTEM_CLOCK
    )
    assert (shown["round_trip"] >= 25, shown["passed"] > 0, shown["by"] in ("relay", "netem")) == (True, True, True)
    goes_on(run)
    still = network_delay.KIND.still(between_job, victim)
    assert still is not None
    assert (still["by"], still["passed"] > shown["passed"]) == (shown["by"], True)
    assert not network_delay.KIND.ended(between_job, victim)
    undo_all(run, between_job)
    assert rules_left(between_job) == []
    assert network_delay.KIND.ended(between_job, victim)
    goes_on(run)


def test_without_a_connection_there_is_nothing_to_cut(run: RunDirectory, between_job: NodesJob) -> None:
    goes_on(run)
    victim = victim_of(run, between_job, seconds=1)
    everyone = Victim(1, victim.identity, victim.record, fault="first", ranks=(0, 1), parameters=victim.parameters)
    with pytest.raises(FaultMissed, match="are on one side of any network"):
        partition.KIND.inject(between_job, everyone)
    between_job.signal(
        next(process.identity for process in between_job.processes() if process.rank == 0), signal.SIGKILL
    )
    between_job.signal(victim.identity, signal.SIGKILL)
    wait_for("end", lambda: has_ended(between_job.state(victim.identity)), seconds=60, clock=SYSTEM_CLOCK)
    with pytest.raises(FaultMissed, match="rank 1 has ended"):
        partition.KIND.evidence(between_job, victim)


@pytest.mark.parametrize(
    "lasting", [at_night({"seconds": 1}), at_night({"seconds": 20}), {}], ids=["brief", "heals", "lasts"]
)
def test_after_a_killed_harness_its_network_is_gone_and_heal_ends_the_ranks(
    lasting: dict[str, int], run: RunDirectory
) -> None:
    seen, done = heals_after_sigkill(run, "partition", **lasting)
    assert "'connections': 1" in seen
    assert len(done) == 1
