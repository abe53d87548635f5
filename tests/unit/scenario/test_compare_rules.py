"""What a scenario may compare, and which cells form a pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import LoadedScenario, load_scenario
from chaos.scenario.pairs import pairs

TEXT = """\
chaos: 1
name: pair
matrix: {{memory: [false, true], victim: [1, 2]}}
cluster: {{ranks: 4}}
job: {{steps: 4, storage: {{memory: "${{memory}}"}}{job}}}
faults: [{{kind: kill, target: {{rank: "${{victim}}"}}, trigger: {{step: 2}}}}]
compare: {compare}
"""


def load(tmp_path: Path, compare: str, job: str = "") -> LoadedScenario:
    path = tmp_path / "pair.yaml"
    path.write_text(TEXT.format(compare=compare, job=job))
    return load_scenario(path)


def test_cells_that_differ_in_the_axis_alone_are_pairs(tmp_path: Path) -> None:
    loaded = load(tmp_path, "{axis: memory, at_most: {load: 0.5}}")
    assert [(cell.name, other.name) for cell, other in pairs(loaded.cells)] == [
        ("memory=false,victim=1", "memory=true,victim=1"),
        ("memory=false,victim=2", "memory=true,victim=2"),
    ]
    assert pairs(loaded.cells[:2]) == []


@pytest.mark.parametrize(
    ("compare", "message"),
    [
        ("{axis: memroy, at_most: {load: 0.5}}", "there is no axis 'memroy' in the matrix"),
        ("{axis: memory, at_most: {lode: 0.5}}", "there is no measure 'lode'"),
        ("{axis: memory, at_most: {load: 1.5}}", "1"),
        ("{axis: memory, at_most: {}}", "at_most"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(tmp_path: Path, compare: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load(tmp_path, compare)


def test_an_axis_with_three_values_makes_no_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pair.yaml"
    path.write_text(TEXT.format(compare="{axis: victim, at_most: {load: 0.5}}", job="").replace("[1, 2]", "[0, 1, 2]"))
    with pytest.raises(ScenarioError, match="axis 'victim' has 3 values: a comparison is of two"):
        load_scenario(path)


def test_a_compile_cache_needs_something_to_compile(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="nothing is compiled"):
        load(tmp_path, "{axis: memory, at_most: {load: 0.5}}", ", compile_cache: true")
