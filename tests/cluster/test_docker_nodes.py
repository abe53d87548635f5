"""Containers of a real engine as nodes: only the run's own are touched; faults of nodes land, heal, are healed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.registry import registry
from chaos.base.wait import wait_for
from chaos.faults.kind import FaultMissed
from chaos.heal.heal import heal_run
from chaos.machine.job.protocol import LaunchSpec, PlatformError
from chaos.platforms.docker.engine import RUN_LABEL, connect, containers_of, remove_run_objects
from chaos.platforms.docker.platform import _KEEPER, DockerPlatform, network_name
from chaos.platforms.docker.subnets import make_network
from chaos.soak.left_on_platform import left_on_platform
from chaos.soak.leftovers import leftovers
from tests.cluster.docker_run import SECONDS, Made, StartOn, landed
from tests.kit.shipped import shipped
from tests.kit.spread import at_night, daily
from tests.rehearsal.kit import SCENARIOS, Chaos, Done

pytestmark = pytest.mark.processes

KINDS = (
    *("node-kill", "node-stop", "node-restart", "node-oom", "node-cpu-quota", "node-pause", "node-disconnect"),
    "node-volume-gone",
)
ENDS = ("node-kill", "node-stop", "node-restart", "node-oom")
"""Those that nobody on the node outlives."""
UNDONE = ("node-restart", "node-disconnect")
"""A node that is started again, and one that is connected again. The other ways are tried every night."""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("node-kill", {"status": "exited", "exit_code": 137}),
        at_night("node-stop", {"status": "exited", "exit_code": 137, "restarted": False}),
        at_night("node-restart", {"status": "running", "restarted": True}),
        ("node-oom", {"status": "running", "oom_killed": False, "oom_kills": 1}),
        ("node-pause", {"status": "paused", "connected": True}),
        ("node-disconnect", {"status": "running", "connected": False}),
    ],
)
def test_a_fault_of_a_node_lands_on_it_alone_and_is_put_back(made: Made, name: str, shown: dict[str, Any]) -> None:
    kind = registry("faults").load(name)
    evidence = landed(made, kind, 1)
    assert shown.items() <= evidence["node"].items()
    assert made.job.exit_status(made.job.launchers[0]) is None
    assert made.job.state(made.job.launchers[0]) == "alive"
    made.undo()
    if name in ENDS:
        assert evidence["signal"] == 9
        assert made.job.state(made.job.launchers[1]) == "gone"
    else:
        assert made.job.state(made.job.launchers[1]) == "alive"
        assert made.job.exit_status(made.job.launchers[1]) is None
    again = made.nodes.ready()
    assert [node.state() for node in again] == ["running", "running"]
    assert all(node.shown()["connected"] for node in again)
    assert len({node.address for node in again}) == 2


def test_a_node_that_is_off_the_network_already_is_not_disconnected(made: Made) -> None:
    made.nodes.all()[1].disconnect()
    with pytest.raises(FaultMissed, match="was so before this fault was made"):
        landed(made, registry("faults").load("node-disconnect"), 1)


def test_a_container_that_ends_by_itself_is_not_taken_for_killed(made: Made) -> None:
    node, launcher = made.nodes.all()[1], made.job.launchers[1]
    node.container.stop(timeout=0 if "SIGTERM" not in _KEEPER else 30)
    status = wait_for("end", lambda: made.job.exit_status(launcher), seconds=SECONDS)
    code = node.shown()["exit_code"]
    assert f"ended with exit code {code}" in status.told_by
    assert status.signal == (9 if code == 137 else None)
    with pytest.raises(FaultMissed, match="was so before"):
        landed(made, registry("faults").load("node-kill"), 1)


@pytest.mark.parametrize("name", daily(KINDS, *UNDONE))
def test_heal_puts_a_fault_back_and_takes_all_away_without_the_harness(made: Made, name: str) -> None:
    landed(made, registry("faults").load(name), 1)
    made.nodes.close()
    made.run.lock.release()
    report = heal_run(made.run.path)
    assert report.failed == []
    assert any("removed container" in one for one in report.done)
    if name not in ("node-kill", "node-stop", "node-restart"):
        assert any(one.startswith("fault-node-1: node 1") for one in report.done)
    assert made.left() == []
    assert heal_run(made.run.path).outcome == "nothing"


def test_a_quota_of_a_node_is_felt_by_it_alone_and_ends_by_its_undo(made: Made) -> None:
    kind = registry("faults").load("node-cpu-quota")
    evidence = landed(made, kind, 1)
    assert (evidence["quota"], evidence["throttled"] > 0) == (5000, True)
    assert (made.nodes.all()[0].quota(), made.nodes.all()[0].waited()) == (0, 0)
    assert not kind.ended(made.job, made.victim(1))
    assert len(made.undo()) == 1
    assert kind.ended(made.job, made.victim(1))
    assert made.job.state(made.job.launchers[1]) == "alive"


def test_nothing_but_what_carries_the_runs_label_is_touched(made: Made, tmp_path: Path) -> None:
    with closing(connect(made.engine)) as client:
        network = client.networks.create("foreign", labels={RUN_LABEL: made.run.token + "x"})
        other = client.containers.create(
            "chaos-node:host", ["/none"], name="foreign", labels={RUN_LABEL: "another"}, network="foreign"
        )
        unlabelled = client.containers.create("chaos-node:host", ["/none"], name=f"{made.run.token[-16:]}-0")
        try:
            assert len(made.left()) == 3
            assert len(remove_run_objects(client, made.run.token)) == 3
            assert made.left() == []
            assert remove_run_objects(client, made.run.token) == []
            other.reload()
            unlabelled.reload()
            network.reload()
        finally:
            other.remove()
            unlabelled.remove()
            network.remove()


def test_the_search_after_a_kill_goes_through_the_whole_engine(made: Made) -> None:
    """It finds what has lost its label too, and after heal nothing but what heal cannot know."""
    token, job = made.run.token, made.run.path / "job"
    job.mkdir(exist_ok=True)
    with closing(connect(made.engine)) as client:
        volume = client.volumes.create("kept", labels={RUN_LABEL: token})
        bound = client.containers.create("chaos-node:host", ["/none"], name="bound", volumes=[f"{job.resolve()}:/in"])
        other = client.volumes.create("another", labels={RUN_LABEL: token + "x"})
        try:
            name = network_name(token)
            nodes = [f"container {name}-{number}, running" for number in range(2)]
            steps = made.run.ledger.read().steps
            found = left_on_platform(made.run.path.resolve(), token, steps)
            beside = ["container bound, created", "volume kept"]
            assert sorted(found) == sorted([*nodes, f"network {name}", *beside])
            made.nodes.close()
            made.run.lock.release()
            assert heal_run(made.run.path).ok
            assert left_on_platform(made.run.path.resolve(), token, steps) == beside
            assert [leftover for leftover in leftovers(made.run.path.parent) if "container bound" in leftover]
        finally:
            bound.remove()
            volume.remove()
            other.remove()
    assert left_on_platform(made.run.path.resolve(), token, steps) == []


def test_a_launcher_has_its_containers_own_environment(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/of/the/harness")
    monkeypatch.setenv("TOKEN", "hunter2")
    monkeypatch.setenv("SAME", "both")
    path = made.run.path / "told"
    argv = ("sh", "-c", f"env > {path}.new; mv {path}.new {path}")
    spec = LaunchSpec(made.run.token, "env", argv, {"SAME": "both"}, made.run.path, made.run.path / "log-env")
    made.nodes.all()[0].helper.start(replace(spec, before={"PATH": "/first"}))
    wait_for("environment", path.is_file, seconds=SECONDS)
    found = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert found["HOME"] != "/of/the/harness"
    assert "TOKEN" not in found
    assert (found["SAME"], found["PATH"].split(":")[0]) == ("both", "/first")


def test_a_run_takes_the_first_free_subnet_and_is_refused_when_there_is_none(engine: str) -> None:
    listed = ("10.199.1.0/29", "10.199.2.0/29")
    with closing(connect(engine)) as client:
        made = []
        try:
            for token in ("one", "two"):
                made.append(make_network(client, f"chaos-{token}", token, listed))
            with pytest.raises(PlatformError, match=r"have all of 10\.199\.1\.0/29, 10\.199\.2\.0/29"):
                make_network(client, "chaos-three", "three", listed)
            taken = [network.attrs["IPAM"]["Config"][0]["Subnet"] for network in made]
            assert tuple(taken) == listed
            assert [network.name for network in client.networks.list(filters={"label": f"{RUN_LABEL}=two"})] == [
                "chaos-two"
            ]
            with pytest.raises(PlatformError, match="cannot be made"):
                make_network(client, "chaos-none", "none", ("10.199.3.0/99",))
        finally:
            for network in made:
                network.remove()


def test_another_engine_at_the_same_address_is_not_touched(made: Made) -> None:
    (step,) = [undo_step for undo_step in made.run.ledger.open_steps() if undo_step.action == "end-nodes"]
    other = {**step.arguments, "identity": "another"}
    for act in (
        lambda: DockerPlatform().put_back(other, made.run.token, SYSTEM_CLOCK),
        lambda: DockerPlatform().left(other, made.run.token),
        lambda: DockerPlatform().reach(other, made.run.token, 0),
        lambda: DockerPlatform().restore(other, made.run.token, 0, "connect"),
    ):
        with pytest.raises(PlatformError, match="another Docker engine answers"):
            act()
    assert len(made.left()) == 3


def test_how_to_take_them_away_is_on_disk_and_every_object_carries_the_label(made: Made) -> None:
    steps = [step for step in made.run.ledger.open_steps() if step.action == "end-nodes"]
    assert [step.arguments["platform"] for step in steps] == ["docker"]
    assert len(made.left()) == 3


RunOn = Callable[..., Done]


@pytest.fixture
def run_on(start_on: StartOn) -> RunOn:
    """``chaos run --platform docker`` on this engine, to its end."""
    return lambda *arguments: start_on(*arguments).end()


def test_a_run_on_two_containers_passes_and_leaves_nothing(run_on: RunOn, engine: str) -> None:
    done = run_on(SCENARIOS / "plain-two-nodes.yaml", "--baseline", "none")
    assert done.code == 0, done.errors + done.output
    run = done.run
    assert {event.data["host"] for event in run.history.select("clock")} == {"node-0", "node-1"}
    assert run.left() == []
    with closing(connect(engine)) as client:
        assert containers_of(client, run.token) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("node-cpu-quota", "node-volume-gone")])
def test_a_fault_of_a_node_is_recovered_from(run_on: RunOn, kind: str) -> None:
    done = run_on(shipped("plain-node-faults"), "--cell", f"kind={kind}")
    assert done.code == 0, done.errors + done.output
    assert done.run.left() == []


@pytest.mark.nightly
def test_nothing_is_left_of_a_run_whose_harness_was_killed(start_on: StartOn, fresh: Chaos, engine: str) -> None:
    harness = start_on(SCENARIOS / "plain-two-nodes.yaml", "--baseline", "none")
    run = harness.run("plain-two-nodes")
    for rank in range(4):
        harness.event(run, "rank.found", rank=rank)
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert run.left() == []
    with closing(connect(engine)) as client:
        assert containers_of(client, run.token) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [
        "pause",
        "straggler",
        "plain-node-quota",
        "plain-node-volume",
        "plain-node-volume-refused",
        "plain-dns-gone",
        "plain-dns-gone-arf",
    ],
)
def test_shipped_scenarios_of_plain_ranks_pass_unchanged(run_on: RunOn, name: str) -> None:
    done = run_on(shipped(name))
    assert done.code == 0, done.errors + done.output
    assert [run.left() for run in done.runs if run.left()] == []


@pytest.mark.nightly
@pytest.mark.rehearsal
@pytest.mark.parametrize("name", ["kill-rank", "kill-node"])
def test_the_shipped_scenarios_pass_unchanged(run_on: RunOn, name: str) -> None:
    done = run_on(shipped(name))
    assert done.code == 0, done.errors + done.output
    assert done.run.left() == []
