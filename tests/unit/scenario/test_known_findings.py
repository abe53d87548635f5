"""What a scenario may fail by is kept beside it, holds for nobody else's scenario, and is read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Finding

SCENARIO = """\
chaos: 1
name: kill-rank
cluster: {ranks: 4}
job: {steps: 12}
"""
KNOWN = """\
known-findings: 1
scenarios:
  kill-rank: {id: F-11, sdk: vendor, always: false, failing: [recovery]}
  other: {id: F-12, failing: [loss]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenarios" / "mechanisms" / "kill-rank.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(SCENARIO)
    return path


def known_of(path: Path) -> tuple[Finding | None, tuple[str, ...]]:
    scenario = load_scenario(path).cells[0].scenario
    return scenario.known, scenario.failing


@pytest.mark.parametrize("directory", ["", "mechanisms"])
def test_a_finding_beside_or_above_a_scenario_is_its_own(scenario: Path, directory: str) -> None:
    assert known_of(scenario) == (None, ())
    (scenario.parents[1] / directory / "known-findings.yaml").write_text(KNOWN)
    assert known_of(scenario) == (Finding(id="F-11", sdk="vendor", always=False), ("recovery",))


def test_the_nearest_file_goes_first(scenario: Path) -> None:
    (scenario.parents[1] / "known-findings.yaml").write_text(KNOWN)
    (scenario.parent / "known-findings.yaml").write_text(KNOWN.replace("F-11", "F-13"))
    known, _ = known_of(scenario)
    assert known is not None
    assert known.id == "F-13"


def test_every_cell_has_the_finding(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("12", '"${steps}"') + "matrix: {steps: [8, 12]}\n")
    (scenario.parent / "known-findings.yaml").write_text(KNOWN)
    assert [cell.scenario.failing for cell in load_scenario(scenario).cells] == [("recovery",)] * 2


def test_a_file_above_the_scenarios_excuses_nothing(scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "known-findings.yaml").write_text(KNOWN)
    assert known_of(scenario) == (None, ())


def test_outside_of_a_directory_of_scenarios_only_the_file_beside_counts(tmp_path: Path) -> None:
    path = tmp_path / "below" / "kill-rank.yaml"
    path.parent.mkdir()
    path.write_text(SCENARIO)
    (tmp_path / "known-findings.yaml").write_text(KNOWN)
    assert known_of(path) == (None, ())
    (path.parent / "known-findings.yaml").write_text(KNOWN)
    assert known_of(path)[1] == ("recovery",)


def test_a_scenario_with_a_finding_of_its_own_may_not_have_another_one(scenario: Path) -> None:
    scenario.write_text(f"{SCENARIO}finding: F-07\nfailing: [loss]\n")
    (scenario.parent / "known-findings.yaml").write_text(KNOWN)
    with pytest.raises(ScenarioError, match=r"kill-rank\.yaml:5:1: kill-rank has a finding here and another one in"):
        load_scenario(scenario)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("known-findings: 1\n", "", r":2:1: the key 'known-findings' is missing|:1:1: the key 'known-findings'"),
        ("known-findings: 1", "known-findings: 2", r":1:1: 'known-findings'"),
        (", failing: [recovery]", "", r":3:3: the key 'failing' is missing"),
        ("failing: [recovery]", "failing: []", r":3:\d+: 'failing'"),
        ("always: false", "alway: false", r":3:\d+: unknown key 'alway'"),
        ("id: F-11", "id: eleven", r":3:\d+: 'id'"),
        ("always: false", "with_vendor: [run]", r":3:\d+: the finding is of the SDK vendor alone"),
        ("other:", "kill-rank:", r":4:3: .*kill-rank"),
        ("scenarios:", "scenarios: [", r":\d+:\d+: "),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(scenario: Path, old: str, new: str, said: str) -> None:
    assert old in KNOWN
    (scenario.parent / "known-findings.yaml").write_text(KNOWN.replace(old, new, 1))
    with pytest.raises(ScenarioError, match=rf"known-findings\.yaml{said}".replace("|", r"|known-findings\.yaml")):
        load_scenario(scenario)
