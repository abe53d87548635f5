"""The page of conformance tells what became of scenarios with the vendor's package, and which had no run with it."""

from __future__ import annotations

import re
from functools import cache

import pytest

from chaos.rehearsal.protection import needs_sdk
from chaos.run.prepare.prepare import known_names
from chaos.scenario.find import iter_scenarios
from chaos.scenario.load import load_scenario
from tests.documents.blocks import ROOT
from tests.kit.shipped import SHIPPED

pytestmark = pytest.mark.processes

PAGE = (ROOT / "docs" / "design" / "conformance.md").read_text("utf-8")


@cache
def scenarios() -> dict[str, bool]:
    """The scenarios of the repository by name, and whether one of their cells needs the SDK."""
    names = known_names()
    loaded = [load_scenario(path, names=names).cells for path in iter_scenarios([SHIPPED])]
    return {cells[0].scenario.name: any(needs_sdk(cell.scenario.job) for cell in cells) for cells in loaded}


def rows() -> dict[str, str]:
    """The rows of the table that name scenarios, by what they say of them. One names those of the list below it."""
    found: dict[str, str] = dict(re.findall(r"^\| (scenarios, [\w ]+?) \|(.*)\|$", PAGE, re.M))
    return found | {"scenarios, pass": found["scenarios, pass"] + passed()}


def passed() -> str:
    """The list of the scenarios that pass."""
    return PAGE.partition("\n### Scenarios that pass\n")[2].partition("\n#")[0]


def named(row: str) -> set[str]:
    """The scenarios that a row names; ``handler=clean`` is a cell of one."""
    return set(re.findall(r"`([\w.-]+)`", row))


def test_the_table_has_the_rows_that_this_is_about() -> None:
    assert set(rows()) == {"scenarios, pass", "scenarios, fail", "scenarios, unknown", "scenarios, not run"}
    assert any(scenarios().values()) and not all(scenarios().values())
    assert len(named(rows()["scenarios, pass"])) > 100


def test_a_scenario_that_no_row_names_is_said_not_to_have_run() -> None:
    answer = set().union(*map(named, rows().values()))
    assert any(needs and name not in answer for name, needs in scenarios().items())
    assert "there was no run of any other scenario that no row names" in rows()["scenarios, not run"]


def test_no_row_names_a_scenario_that_there_is_not() -> None:
    strangers = {row: names for row, text in rows().items() if (names := named(text) - scenarios().keys())}
    assert strangers == {}


def test_what_was_not_run_is_in_no_row_of_what_was() -> None:
    fields = {row: named(text) for row, text in rows().items()}
    not_run = fields.pop("scenarios, not run")
    assert not_run and not not_run & set().union(*fields.values())
