"""``chaos kubernetes`` checks manifests, prints those of a scenario and the least rights for it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner

from chaos.cli.commands.kubernetes import command

SCENARIO = """\
chaos: 1
name: in-pods
cluster:
  ranks: 4
  nodes: 2
  kubernetes: {namespace: train, image: "train:1", workload: ascendjob, nodes: [worker-1]}
job: {kind: rehearsal, steps: 4, agent: true, strategies: [recover, dump]}
"""


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    return (result.return_value if result.exception is None else -1), result.output + str(result.exception or "")


def test_what_is_printed_for_a_scenario_passes_the_check_with_it(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO, "utf-8")
    code, printed = call("manifest", str(scenario))
    assert code == 0, printed
    manifest = tmp_path / "job.yaml"
    manifest.write_text(printed, "utf-8")
    assert call("check", str(manifest), "--scenario", str(scenario))[0] == 0
    manifest.write_text(printed.replace("recover-strategy: recover,dump", "recover-strategy: recover"), "utf-8")
    code, said = call("check", str(manifest), "--scenario", str(scenario), "--json")
    assert code == 64
    assert "the scenario expects recover, dump" in json.loads(said)["problems"][0]["message"]


def test_rights_are_those_of_one_namespace_and_of_the_nodes_that_are_named(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO, "utf-8")
    code, printed = call("rbac", str(scenario))
    assert code == 0, printed
    objects = list(yaml.safe_load_all(printed))
    assert [one["rules"][0]["resourceNames"] for one in objects if one["kind"] == "ClusterRole"] == [["worker-1"]]
    for one in objects:
        for rule in one.get("rules", ()):
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
    scenario.write_text(SCENARIO.replace(", nodes: [worker-1]", ""), "utf-8")
    assert "ClusterRole" not in call("rbac", str(scenario))[1]


def test_a_scenario_without_a_cluster_is_refused(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO[: SCENARIO.index("  kubernetes:")] + SCENARIO[SCENARIO.index("job:") :], "utf-8")
    code, said = call("rbac", str(scenario))
    assert code == -1
    assert "no cluster.kubernetes" in said


def test_the_check_says_of_a_scenario_that_it_is_one_and_what_to_check_instead(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO, "utf-8")
    code, said = call("check", str(scenario))
    assert code == 64
    assert f"{scenario}:1:1" in said and "the file is a scenario, and no manifest of a job's objects" in said
    assert "chaos kubernetes check job.yaml --scenario scenario.yaml" in said and "chaos validate" in said
