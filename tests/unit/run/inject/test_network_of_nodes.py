"""``network: true`` starts a job on nodes with a network that faults can act on; older names of that mean the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.plan.model import Plan
from chaos.run.prepare.needs import needs_of_scenario
from chaos.run.prepare.on_platform import platform_problems
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.run.prepare.registered import look_up_names
from chaos.scenario.load import LoadedScenario, load_scenario
from chaos.store.baseline_key import baseline_key

SCENARIO = """chaos: 1
name: nodes
cluster:
  CLUSTER
  nodes: 2
  ranks: 4
job: {kind: plain, steps: 12, protection: [TTP]}
faults:
  - kind: KIND
    target: {node: 1}
    trigger: {step: 6, phase: forward}
"""
INVENTORY = """inventory: 1
defaults: {user: me, python: /usr/bin/python3, network: true}
hosts: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]
"""
DOCKER, SSH = "docker: {subnets: [10.99.0.0/24]}", "ssh: {inventory: hosts.yaml}"


def scenario(path: Path, *cluster: str, kind: str = "kill") -> LoadedScenario:
    (path / "hosts.yaml").write_text(INVENTORY)
    file = path / "nodes.yaml"
    file.write_text(SCENARIO.replace("CLUSTER", "\n  ".join(cluster)).replace("KIND", kind))
    return load_scenario(file, names=known_names())


def planned(loaded: LoadedScenario) -> Plan:
    return plan_cell(loaded, loaded.cells[0], 1)


@pytest.mark.parametrize("kind", ["kill", "partition"])
@pytest.mark.parametrize(
    ("platform", "before", "rest"),
    [
        ("local-nodes", "local-networks", ()),
        ("local", "local-networks", ()),
        ("docker", "docker-networks", (DOCKER,)),
        ("ssh", "ssh-networks", (SSH,)),
    ],
)
def test_the_older_name_of_a_platform_with_a_network_means_the_same(
    tmp_path: Path, platform: str, before: str, rest: tuple[str, ...], kind: str
) -> None:
    now = scenario(tmp_path, f"platform: {platform}", "network: true", *rest, kind=kind)
    then = scenario(tmp_path, f"platform: {before}", "# the same", *rest, kind=kind)
    both = [one.cells[0].scenario for one in (now, then)]
    assert [look_up_names(one).platform.name for one in both] == [before, before]
    assert look_up_names(both[0]).named.settings_in(both[0]) == look_up_names(both[1]).named.settings_in(both[1])
    assert (look_up_names(both[0]).named.settings_in(both[0]) is not None) is bool(rest)
    assert needs_of_scenario(both[0]) == needs_of_scenario(both[1])
    simulated = [registry("jobs").load("plain").simulated(one, "standin") for one in both]
    assert simulated[0] == simulated[1]
    assert planned(now) == planned(then)


def test_a_job_without_such_a_wish_is_started_where_the_scenario_says(tmp_path: Path) -> None:
    assert look_up_names(scenario(tmp_path, "platform: docker").cells[0].scenario).platform.name == "docker"
    assert (
        look_up_names(scenario(tmp_path, "platform: docker", "network: false").cells[0].scenario).platform.name
        == "docker"
    )


def test_a_platform_without_such_a_network_refuses_it_at_its_place(tmp_path: Path) -> None:
    settings = "kubernetes: {namespace: train, image: a, volume: {path: /data, host_path: /data}}"
    loaded = scenario(tmp_path, "platform: kubernetes", "network: true", settings)
    (problem,) = platform_problems(loaded, loaded.cells[0])
    assert problem.line == 5
    assert problem.message == "the platform kubernetes has no network between nodes that faults could act on"
    assert problem.hint == "leave it out, or use local or local-nodes or docker or ssh"


def test_a_baseline_is_found_under_the_key_that_it_had_before_there_was_such_a_wish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters: list[dict[str, Any]] = []
    written = json.dumps

    def dumps(parts: dict[str, Any], **options: Any) -> Any:
        clusters.extend([parts["cluster"]] if "cluster" in parts else [])
        return written(parts, **options)

    monkeypatch.setattr(json, "dumps", dumps)
    for cluster in ("platform: docker", "network: true"):
        one = scenario(tmp_path, cluster).cells[0].scenario
        baseline_key(one, fingerprint={}, versions={}, sdk="standin", cores=1)
    assert ["network" in cluster for cluster in clusters] == [False, True]
