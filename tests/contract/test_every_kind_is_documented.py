"""docs/reference/faults.md has a section for every fault kind: its meaning, evidence, undo and parameters."""

from __future__ import annotations

import re

import pytest

from chaos.faults.registered import fault_kind
from chaos.manual.prose import cell, own_points
from chaos.run.prepare.prepare import known_names
from chaos.scenario.find import iter_scenarios
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario
from tests.contract.page import head, rows, sections
from tests.kit.every_fault import ON_HARDWARE, kinds
from tests.kit.shipped import SHIPPED

KINDS = [point.name for point in own_points("faults")]
"""Those of this package. Another one has pages of its own."""


def test_the_page_has_a_section_for_each_and_for_nothing_else() -> None:
    assert sorted(sections()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_what_it_is_and_is_on_ascend_what_proves_it_and_what_undoes_it(kind: str) -> None:
    first, *rest = sections()[kind].strip().split("\n\n")
    assert first.endswith(".")
    on_ascend = [paragraph for paragraph in rest if re.match(r"_.*\._$|On Ascend alone: ", paragraph, re.DOTALL)]
    assert on_ascend, "say it in the docstring of the kind's module"
    assert "evidence" in rows(kind)
    assert ("risk" in rows(kind)) == (fault_kind(kind).hazard is not None)
    assert rows(kind).get("undo") or "**undo**: no step" in head()


@pytest.mark.parametrize("kind", KINDS)
def test_it_tells_each_parameter_with_its_range(kind: str) -> None:
    loaded = fault_kind(kind)
    known = loaded.parameters or {}
    words_of_head = " ".join(head().split())
    assert {name for name in rows(kind) if name.startswith("`")} == {f"`{name}`" for name in known}
    for name, parameter in known.items():
        row, limits = rows(kind)[f"`{name}`"], re.findall(r"-?\d[\d.e+]*", parameter.range)
        assert parameter.about
        if row == "optional":
            assert f"`{name}`: {parameter.about}. It is {parameter.range}. " in words_of_head
            continue
        assert f"{row}; ".startswith(f"{cell(parameter.about)}; ")
        assert re.search("; (?:optional|default .+)$", row) is None if parameter.required else row
        assert {*limits, *parameter.words} <= set(re.findall(r"[\w.+-]*\w", row))


def test_a_shipped_scenario_shows_each_kind_that_needs_no_hardware() -> None:
    """The page leaves them to `chaos list --fault KIND`."""
    known = known_names()
    cells = [cell for path in iter_scenarios([SHIPPED]) for cell in load_scenario(path, names=known).cells]
    shown = {fault.kind for cell in cells for fault in cell.scenario.faults}
    assert {kind for kind in KINDS if kind not in ON_HARDWARE} <= shown


def test_the_reference_lists_all_kinds_that_must_be_allowed_by_name() -> None:
    hazardous = [kind for kind in kinds() if fault_kind(kind).hazard is not None]
    described = str(Scenario.model_fields["allow"].description)
    assert described.endswith(f"allowed by name: {', '.join(hazardous)}.")
