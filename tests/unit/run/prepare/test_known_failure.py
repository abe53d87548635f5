"""A fail is a known finding's only in the checks that the scenario names."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.run.prepare.known_failure import failing_by, failing_checks, holding, sdk_of, unexpected, unknown_checks
from chaos.scenario.load import load_scenario
from tests.unit.cli.kit import SCENARIO

FAILED = {"checks": [{"name": name, "verdict": "fail"} for name in ("resume", "loss", "loss")]}
PASSED = {"checks": [{"name": "hygiene", "verdict": "pass"}, {"name": "run", "verdict": "unknown"}]}


def test_the_failing_checks_are_those_of_all_cells_and_of_their_comparison() -> None:
    assert failing_checks([FAILED, PASSED, {}]) == ("resume", "loss")
    assert failing_checks([FAILED], [{"verdict": "pass"}, {"verdict": "fail"}]) == ("resume", "loss", "comparison")


@pytest.mark.parametrize(
    ("failing", "others"), [(("loss",), ()), (("loss", "hygiene"), ("hygiene",)), ((), ("no check",))]
)
def test_what_the_finding_does_not_name_is_none_of_it(failing: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert unexpected(failing, ("loss", "resume")) == others


@pytest.mark.parametrize("named", ["los", "comparison"])
def test_a_name_that_no_check_has_is_told_with_its_place(tmp_path: Path, named: str) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(f"{SCENARIO}finding: F-01\nfailing: [loss, {named}]\n")
    (cell,) = load_scenario(path).cells
    (problem,) = unknown_checks(cell, str(path))
    assert problem.message == f"failing names no check '{named}'"
    assert (problem.line, problem.column) == (len(path.read_text().splitlines()), 17)
    assert named == "comparison" or problem.hint == "did you mean 'loss'?"


STANDIN = {"simulated": [{"part": "a device", "layer": "device layer"}, {"part": "mindio_ttp, fast", "layer": "SDK"}]}


@pytest.mark.parametrize(
    ("result", "sdk"),
    [(STANDIN, "standin"), ({"simulated": STANDIN["simulated"][:1]}, "vendor"), (FAILED, "vendor")],
)
def test_what_a_run_has_simulated_tells_its_sdk(result: dict[str, object], sdk: str) -> None:
    assert sdk_of(result) == sdk


@pytest.mark.parametrize(
    ("written", "with_vendor", "with_standin"),
    [
        ("F-10", True, True),
        ("{id: F-10}", True, True),
        ("{id: F-10, sdk: vendor}", True, False),
        ("{id: F-10, sdk: standin}", False, True),
    ],
)
def test_a_finding_holds_with_the_sdk_that_it_names(
    tmp_path: Path, written: str, with_vendor: bool, with_standin: bool
) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(f"{SCENARIO}finding: {written}\nfailing: [loss]\n")
    scenario = load_scenario(path).cells[0].scenario
    found = [holding(scenario, [sdk, sdk]) for sdk in ("vendor", "standin")]
    assert [finding is not None and finding.id == "F-10" for finding in found] == [with_vendor, with_standin]


@pytest.mark.parametrize(
    ("sdks", "failing"),
    [
        (["vendor"], ("loss", "mechanism")),
        (["standin"], ("loss",)),
        (["vendor", "standin"], ("loss",)),
        ([], ("loss",)),
    ],
)
def test_with_the_vendors_sdk_a_finding_may_fail_in_more_checks(
    tmp_path: Path, sdks: list[str], failing: tuple[str, ...]
) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(f"{SCENARIO}finding: {{id: F-06, with_vendor: [mechanism]}}\nfailing: [loss]\n")
    assert failing_by(load_scenario(path).cells[0].scenario, sdks) == failing


def test_these_checks_have_to_be_there_too(tmp_path: Path) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(f"{SCENARIO}finding: {{id: F-06, with_vendor: [mechanisms]}}\nfailing: [loss]\n")
    (cell,) = load_scenario(path).cells
    (problem,) = unknown_checks(cell, str(path))
    assert (problem.message, problem.hint) == ("with_vendor names no check 'mechanisms'", "did you mean 'mechanism'?")
    assert problem.column == 35


def test_a_scenario_without_a_finding_has_none_with_any_sdk(tmp_path: Path) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(SCENARIO)
    assert holding(load_scenario(path).cells[0].scenario, ["vendor"]) is None
