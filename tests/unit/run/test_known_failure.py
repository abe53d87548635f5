"""A fail is a known finding's only in the checks that the scenario names."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.run.known_failure import failing_checks, unexpected, unknown_checks
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
