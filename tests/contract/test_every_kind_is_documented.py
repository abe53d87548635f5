"""docs/faults.md has a section for every fault kind: what it stands for, its evidence, its undo and its parameters."""

from __future__ import annotations

import re
from functools import cache

import pytest

from chaos.docs.prose import cell, module_doc, own_points
from chaos.faults.kind import Parametrised
from chaos.registry import registry
from chaos.scenario.find import iter_scenarios
from tests.documents.blocks import ROOT
from tests.every_fault import ON_HARDWARE, SCENARIOS

KINDS = [point.name for point in own_points("faults")]
"""Those of this package. Another one has pages of its own."""


@cache
def sections() -> dict[str, str]:
    """Each section of the page by its heading."""
    _, *found = re.split(r"^## ", (ROOT / "docs" / "faults.md").read_text("utf-8"), flags=re.M)
    return {name: text for name, _, text in (one.partition("\n") for one in found)}


def rows(kind: str) -> dict[str, str]:
    """The table of a kind's section."""
    return dict(re.findall(r"^\| (\S.*?) \| (\S.*) \|$", sections()[kind], re.M))


def test_the_page_has_a_section_for_each_and_for_nothing_else() -> None:
    assert sorted(sections()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_what_it_is_on_ascend_how_it_is_made_what_proves_it_and_what_undoes_it(kind: str) -> None:
    (point,) = [one for one in own_points("faults") if one.name == kind]
    assert "On Ascend" in f"{module_doc(point)} {type(point.load()).__doc__}", f"{point.module}: say what it is there"
    assert "On Ascend" in sections()[kind]
    assert {"made by", "evidence", "undone by", "risk", "scenarios"} <= rows(kind).keys()


@pytest.mark.parametrize("kind", KINDS)
def test_it_tells_each_parameter_with_its_range(kind: str) -> None:
    loaded = registry("faults").load(kind)
    known = loaded.parameters if isinstance(loaded, Parametrised) else {}
    assert {name for name in rows(kind) if name.startswith("`")} == {f"`{name}`" for name in known}
    for name, parameter in known.items():
        assert parameter.about
        assert rows(kind)[f"`{name}`"].startswith(cell(f"{parameter.about}; {parameter.range}; "))


@pytest.mark.parametrize("kind", KINDS)
def test_it_names_a_scenario_where_one_shows_it(kind: str) -> None:
    told = re.findall(r"`([\w-]+)`", rows(kind)["scenarios"])
    assert told or kind in ON_HARDWARE
    assert set(told) <= {path.stem for path in iter_scenarios([SCENARIOS])}
