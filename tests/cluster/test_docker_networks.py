"""Faults of the network between containers of a real engine: the same scenario files, healed by whoever comes after."""

from __future__ import annotations

import signal

import pytest

from chaos.doctor import Machine, probe
from chaos.platforms.network.router import Router
from tests.cluster.docker_run import StartOn, left_of
from tests.kit.shipped import shipped
from tests.rehearsal.kit import Chaos, Run

LACKING = [result for result in probe(("network-namespaces", "tbf", "impairment"), Machine()) if not result.ok]
pytestmark = [pytest.mark.processes, pytest.mark.skipif(bool(LACKING), reason=f"{LACKING and LACKING[0].seen}")]


def passes(start_on: StartOn, engine: str, scenario: str, kind: str, *options: str) -> Run:
    done = start_on(shipped(scenario), *options).end()
    assert done.code == 0, done.errors + done.output
    (landed,) = done.run.history.select("fault.landed", kind=kind)
    assert landed.data["evidence"]
    assert done.run.history.select("fault.healed")
    assert left_of(done.run, engine) == []
    return done.run


@pytest.mark.nightly
def test_an_unchanged_partition_passes_between_containers(start_on: StartOn, engine: str) -> None:
    run = passes(start_on, engine, "partition", "partition", "--cell", "direction=both")
    (landed,) = run.history.select("fault.landed")
    for shown in landed.data["evidence"]:
        assert (shown["lost"], shown["echoes"]["answered"]) == ([[1, 0], [0, 1]], 0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scenario", "kind", "options"),
    [
        ("partition", "partition", ("--cell", "direction=out")),
        ("partition", "partition", ("--cell", "direction=in")),
        ("port-blocked", "port-blocked", ("--cell", "port=controller,direction=both")),
        ("port-blocked", "port-blocked", ("--cell", "port=communicator,direction=in")),
        ("connection-reset", "connection-reset", ()),
        ("plain-network-rate", "network-rate", ()),
        ("plain-network-delay", "network-delay", ()),
        ("plain-network-loss", "network-loss", ()),
        ("plain-partition-lasts", "partition", ()),
        ("plain-partition-heals", "partition", ()),
    ],
)
def test_faults_of_the_network_pass_unchanged(
    start_on: StartOn, engine: str, scenario: str, kind: str, options: tuple[str, ...]
) -> None:
    passes(start_on, engine, scenario, kind, *options)


@pytest.mark.nightly
def test_heal_takes_all_away_after_the_harness_was_killed(start_on: StartOn, fresh: Chaos, engine: str) -> None:
    harness = start_on(shipped("partition"), "--cell", "direction=both", "--baseline", "none")
    run = harness.run("partition")
    harness.event(run, "fault.landed", kind="partition")
    router = Router.recorded(run.path)
    assert router is not None
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert not router.is_there
    assert left_of(run, engine) == []
