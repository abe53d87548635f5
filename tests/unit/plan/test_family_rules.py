"""Families of faults are asked for their rules by registry, those of other packages too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import pytest

from chaos.base.families import FAMILIES
from chaos.base.registry import Registry, RegistryError, installed_points, registry
from chaos.faults.family import Family
from chaos.plan import family_rules
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Occurrence, Rules, in_order
from chaos.plan.job_effect import DEATH, JobEffect
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.problems import Problems

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

MARK = {"kind": "mark", "target": {"rank": 1}, "trigger": {"step": 4}}


def settle(effect: JobEffect, occurrence: Occurrence, problems: Problems) -> JobEffect:
    """A mark with the parameter ``deadly`` is a death."""
    del problems
    return DEATH if occurrence.fault.parameters.get("deadly") else effect


def check(draft: Draft, problems: Problems) -> None:
    """A mark on rank 0 is refused."""
    for fault in draft.faults:
        if fault.fault.kind == "mark" and 0 in fault.fault.ranks:
            problems.add(f"{fault.path}.target", "rank 0 has no place for a mark")


def explain(draft: Draft, faults: Sequence[PlannedFault]) -> Iterator[str]:
    """One reason for each mark."""
    del draft
    yield from (f"fault {fault.id} leaves a mark" for fault in faults if fault.kind == "mark")


RULES = Rules(order=5, settle=settle, check=check, explain=explain)
FAMILY = Family(rules=f"{__name__}:RULES")
MISTAKEN = Family(rules=f"{__name__}:MARK")


@pytest.fixture(params=["FAMILY"])
def other_package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that adds a family of this module to the installed ones."""
    points = [*installed_points(FAMILIES), EntryPoint("marks", f"{__name__}:{request.param}", FAMILIES)]
    known = Registry("chaos.rules", "plan rules", source=lambda group: points if group == FAMILIES else [])
    monkeypatch.setattr(family_rules, "registry", lambda group: known)
    in_order.cache_clear()
    yield
    in_order.cache_clear()


@pytest.mark.usefixtures("other_package")
def test_rules_of_another_package_settle_refuse_and_explain(plan: Planner) -> None:
    assert in_order()[0] is RULES
    made = plan(MARK | {"parameters": {"deadly": True}})
    assert made.faults[0].effect == DEATH
    assert "Fault mark-1 leaves a mark." in made.explanation.reasons
    assert "rank 0 has no place for a mark" in plan.refused(MARK | {"target": {"rank": 0}})


@pytest.mark.usefixtures("other_package")
@pytest.mark.parametrize("other_package", ["MISTAKEN"], indirect=True)
def test_what_is_no_rules_is_named(plan: Planner) -> None:
    with pytest.raises(RegistryError, match=r"test_family_rules:MARK, is no chaos\.plan\.family_rules\.Rules"):
        plan(MARK)


def test_no_two_families_have_one_place_in_an_order() -> None:
    rules = in_order()
    assert len(rules) == len(registry("rules").names()) > 5
    assert len({one.order for one in rules}) == len(rules)
    explaining = [one for one in rules if one.explain is not None]
    assert len({one.listed for one in explaining}) == len(explaining)


def test_rules_that_say_nothing_change_nothing(plan: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plan(MARK)
    nothing = replace(RULES, settle=None, check=None, explain=None)
    known = in_order()
    monkeypatch.setattr(family_rules, "in_order", lambda: (nothing, *known))
    assert plan(MARK) == expected
