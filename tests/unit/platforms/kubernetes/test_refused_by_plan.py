"""What the platform kubernetes cannot do, and what needs it, is refused before anything starts, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from tests.kit.shipped import shipped

SCENARIO = shipped("kubernetes-pod-delete")


def planned(directory: Path, *changes: tuple[str, str]) -> None:
    text = SCENARIO.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = directory / "scenario.yaml"
    path.write_text(text, "utf-8")
    loaded = load_scenario(path, settings={}, names=known_names())
    plan_cell(loaded, loaded.cells[0], 0)


def test_the_shipped_scenario_is_planned(tmp_path: Path) -> None:
    planned(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("platform: kubernetes", "platform: local-nodes")], "cannot act on a pod"),
        ([("platform: kubernetes", "platform: local")], "cannot act on a pod"),
        ([("      node: 1\n    trigger", "      rank: 2\n    trigger")], "hits whole nodes"),
        ([("kind: pod-delete", "kind: read-only")], "cannot carry the fault kind 'read-only'"),
        ([("kind: pod-delete", "kind: node-cordon")], "allow: [node-cordon]"),
        (
            [("kind: pod-delete", "kind: node-drain"), ("tags:", "allow: [node-drain]\ntags:")],
            "node-drain changes a node of the cluster, and the scenario names none that may be changed",
        ),
        (
            [
                ("kind: pod-delete", "kind: public-fault"),
                ("tags:", "allow: [public-fault]\ntags:"),
                ("      phase: forward\n", "    parameters:\n      devices: [1, 40]\n"),
            ],
            "devices of a public-fault is a list of different whole numbers from 0 to 31",
        ),
        ([("  kubernetes:\n    namespace: ${namespace}\n", "  kubernetes:\n    namespace: Train\n")], "namespace"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, changes: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        planned(tmp_path, *changes)
    assert said in str(refused.value)


def test_a_scenario_that_names_no_cluster_is_refused(tmp_path: Path) -> None:
    text = SCENARIO.read_text("utf-8")
    start, end = text.index("  kubernetes:\n"), text.index("job:\n")
    variables = text[text.index("variables:") : text.index("cluster:")]
    with pytest.raises(ScenarioError, match=r"cluster\.kubernetes is missing"):
        planned(tmp_path, (text[start:end], ""), (variables, ""))
