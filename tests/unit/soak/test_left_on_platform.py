"""What a platform still has of a killed run is found, and a search that cannot be made is told, never passed over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.doctor import Machine, probe
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.docker import search
from chaos.platforms.docker.engine import RUN_LABEL
from chaos.platforms.docker.platform import network_name
from chaos.platforms.kind import PlatformKind
from chaos.platforms.nodes import END_NODES
from chaos.soak import left_on_platform as module
from chaos.soak.left_on_platform import left_on_platform
from chaos.soak.leftovers import leftovers
from chaos.store.directory import RunDirectory

NOBODY = 2**22 + 1
"""A PID that Linux never gives."""
LACKING = [result for result in probe(("network-namespaces",), Machine()) if not result.ok]


def on(platform: str, **arguments: Any) -> UndoStep:
    return UndoStep("nodes", None, END_NODES, {"platform": platform, **arguments})


class Engine:
    """What a Docker engine lists, by its API (docker.APIClient)."""

    def __init__(self, containers: list[Any], networks: list[Any], volumes: list[Any] | None) -> None:
        listed = {"Volumes": volumes}
        self.api = SimpleNamespace(
            containers=lambda all: containers if all else [], networks=lambda: networks, volumes=lambda: listed
        )
        self.closed = False

    def close(self) -> None:
        self.closed = True


def engine_with(run: RunDirectory) -> Engine:
    """One with things of the run, known by different signs, and as many of others that look alike."""
    label, other = {RUN_LABEL: run.token}, {RUN_LABEL: run.token + "x"}
    name = network_name(run.token)
    into = [{"Type": "bind", "Source": str(run.path / "job")}]
    beside = [{"Type": "bind", "Source": f"{run.path}-2/job"}, {"Type": "bind", "Source": str(run.path.parent)}]
    containers = [
        {"Id": "1", "Names": ["/labelled"], "Labels": label, "State": "running"},
        {"Id": "2", "Names": [f"/{name}-0"], "Labels": None, "State": "exited"},
        {"Id": "3", "Names": ["/bound"], "Mounts": into, "State": "paused"},
        {"Id": "4", "Names": ["/a"], "Labels": other, "Mounts": beside, "State": "running"},
        {"Id": "5", "Names": [f"/{run.token[-16:]}-0"], "Mounts": [{"Type": "tmpfs"}]},
    ]
    networks = [{"Name": "n", "Labels": label}, {"Name": name}, {"Name": "bridge", "Labels": {}}]
    volumes = [{"Name": "v", "Labels": label}, {"Name": "0af3", "Labels": None}]
    return Engine(containers, networks, volumes)


@pytest.mark.parametrize("platform", ["docker", "docker-networks"])
def test_containers_networks_and_volumes_are_found_by_label_name_and_directory(
    dead: RunDirectory, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_with(dead)
    monkeypatch.setattr(search, "connect_again", lambda arguments: engine)
    monkeypatch.setattr(module, "leftovers_here", lambda token: [])
    name = network_name(dead.token)
    assert left_on_platform(dead.path, dead.token, [on(platform, engine="unix:///e")]) == [
        "container labelled, running",
        f"container {name}-0, exited",
        "container bound, paused",
        "network n",
        f"network {name}",
        "volume v",
    ]
    assert engine.closed


def test_an_engine_with_nothing_of_the_run_is_clean(dead: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "connect_again", lambda arguments: Engine([], [], None))
    assert left_on_platform(dead.path, dead.token, [on("docker", engine="unix:///e")]) == []


def test_an_engine_that_does_not_answer_is_told(dead: RunDirectory, tmp_path: Path) -> None:
    dead.ledger.record(on("docker", engine=f"unix://{tmp_path}/none.sock"))
    dead.ledger.close("nodes", "removed container a")
    (told,) = [leftover for leftover in leftovers(dead.path.parent, NOBODY) if "history" not in leftover]
    assert told.startswith(f"{dead.run}: not searched: the platform docker: the Docker engine cannot be reached: ")


def test_a_platform_that_can_tell_is_asked_and_one_that_cannot_leaves_nothing(
    dead: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hosts:
        name = "hosts"

        def left(self, arguments: dict[str, Any], token: str) -> list[str]:
            assert token == dead.token
            if not arguments["answers"]:
                raise PlatformError("host a does not answer")
            return ["a:/tmp/chaos-1"]

    monkeypatch.setattr(module, "kind_of_step", lambda step: PlatformKind("hosts", cast("Any", Hosts)))
    monkeypatch.setattr(module, "platform_of_step", lambda step: Hosts())
    assert left_on_platform(dead.path, dead.token, [on("hosts", answers=True)]) == ["a:/tmp/chaos-1"]
    entries = ["not searched: the platform hosts: host a does not answer"]
    assert left_on_platform(dead.path, dead.token, [on("hosts", answers=False)]) == entries
    monkeypatch.undo()
    assert left_on_platform(dead.path, dead.token, [on("local-nodes")]) == []
    assert left_on_platform(dead.path, dead.token, [UndoStep("job", None, "end-job")]) == []
    (unknown,) = left_on_platform(dead.path, dead.token, [on("moon")])
    assert unknown.startswith("not searched: the platform moon: there is no platform 'moon'")


def test_a_network_that_cannot_be_looked_at_is_told(dead: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(token: str) -> list[str]:
        raise PermissionError(1, "the packet filter (nftables): Operation not permitted")

    monkeypatch.setattr(module, "leftovers_here", refuse)
    (told,) = left_on_platform(dead.path, dead.token, [on("local-networks")])
    assert told.startswith("not searched: this host's own network: ") and "Operation not permitted" in told
    assert left_on_platform(dead.path, dead.token, [on("local-nodes")]) == [], "it has no network of the run's own"


IN_A_NETWORK_OF_ITS_OWN = """
import json, os, socket, subprocess, sys
from chaos.machine.linux.net.netfilter import Rule as Filter, make, turn_over
from chaos.machine.remote.network import devices_of, tables_of
from chaos.platforms.network.leftovers import _Here, leftovers_here
from chaos.platforms.network.addressing import address_of
from chaos.machine.linux.net.rules import Rule, Rules
token = sys.argv[1]
before = leftovers_here(token)
for name, other in (("node0", "eth7"), ("relay1", "node-1")):
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", other], check=True)
nodes = Rule(address_of(0), address_of(3), 1001, 201)
Rules(_Here()).add([nodes, Rule("192.0.2.1", "192.0.2.2", 1002, 201), Rule("192.0.2.1", address_of(1), 1003, 201)])
make(tables_of(token) + "0f", [Filter("192.0.2.1", "192.0.2.2")])
make(tables_of("another-run-of-someone") + "0f", [Filter("192.0.2.1", "192.0.2.2")])
for run in (token, "another-run-of-someone"):
    held = devices_of(run) + "0f"
    subprocess.run(["ip", "link", "add", held, "type", "ifb"], check=True)
    turn_over(tables_of(run) + "1f", "node0", socket.if_nametoindex(held), [Filter("192.0.2.1", "192.0.2.2")])
print(json.dumps([before, leftovers_here(token)]))
"""


@pytest.mark.skipif(bool(LACKING), reason=f"{LACKING and LACKING[0].seen}")
def test_links_rules_and_tables_in_the_hosts_own_network_are_found(dead: RunDirectory) -> None:
    """By the kernel's word, in a namespace that this test makes and takes for the host's own."""
    command = ["unshare", "--net", "--", sys.executable, "-c", IN_A_NETWORK_OF_ITS_OWN, dead.token]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, found = json.loads(done.stdout)
    assert before == []
    assert sorted(found[:2]) == ["link node0", "link relay1"]
    assert found[2:] == [
        "rule: what comes from 10.77.0.2 for 10.77.0.14 vanishes",
        *(f"table chaos_{dead.token[-16:]}_{one} of the packet filter" for one in ("0f", "1f")),
        f"link ch{dead.token[-8:]}0f, in which packets were to wait",
    ]
