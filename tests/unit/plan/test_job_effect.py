"""What a fault does to the job: an object that the plan asks, and a word in plan.json."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import pytest

from chaos.base.families import FAMILIES
from chaos.base.registry import Registry, RegistryError
from chaos.faults.family import Family
from chaos.plan import family_rules, job_effect
from chaos.plan.family_rules import Occurrence, Rules
from chaos.plan.io import PlanFormatError, dumps, loads
from chaos.plan.job_effect import BUILT_IN, DEATH, NONE, JobEffect, SpoiltSaves, is_known, may_be_planned
from chaos.plan.problems import Problems

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

BLINDED = JobEffect("blinded node", suspends=True)
WORN = JobEffect("worn flash", spoils_saves=SpoiltSaves(done="worn the flash out", errors=("[Errno 5]",)))

FAMILY = Family(effects=(BLINDED, WORN))
USURPER = Family(effects=(JobEffect("death", hangs=True),))

FAULT = {"kind": "mark", "target": {"rank": 1}, "trigger": {"step": 4}}


@pytest.fixture(params=["FAMILY"])
def other_package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package whose family lists effects."""
    points = [EntryPoint("blind", f"{__name__}:{request.param}", FAMILIES)]
    known = Registry("chaos.effects", "effect", source=lambda group: points if group == FAMILIES else [])
    monkeypatch.setattr(job_effect, "registry", lambda group: known)
    yield


@pytest.mark.usefixtures("other_package")
def test_an_effect_of_another_package_is_planned_by_its_fields_and_read_again(plan: Planner) -> None:
    plan.effects = {**plan.effects, "mark": BLINDED}
    made = plan(FAULT)
    assert (made.response.mechanism, made.faults[0].effect) == ("TTP", BLINDED)
    text = dumps(made)
    assert '"effect": "blinded node"' in text
    assert loads(text) == made


@pytest.mark.usefixtures("other_package")
def test_the_words_of_such_an_effect_stand_in_the_plan(plan: Planner) -> None:
    plan.effects = {**plan.effects, "mark": WORN}
    killed = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 6}}
    made = plan(FAULT, killed, expect={"checkpoint": "none"})
    assert "the save is interrupted: fault mark-1 has worn the flash out" in " ".join(made.explanation.reasons)


def test_an_effect_that_no_family_lists_is_refused(plan: Planner) -> None:
    plan.effects = {**plan.effects, "mark": BLINDED}
    assert "the effect 'blinded node', which is not yet supported by this version" in plan.refused(FAULT)


@pytest.mark.usefixtures("other_package")
@pytest.mark.parametrize("other_package", ["USURPER"], indirect=True)
def test_no_package_takes_the_name_of_a_built_in_effect(plan: Planner) -> None:
    (other,) = USURPER.effects
    assert not may_be_planned(other) and not is_known(other) and is_known(DEATH)
    plan.effects = {**plan.effects, "mark": other}
    assert "the effect 'death', which is not yet supported by this version" in plan.refused(FAULT)


def test_a_plan_with_the_word_of_no_effect_is_not_read(plan: Planner) -> None:
    text = dumps(plan(FAULT)).replace('"effect": "none"', '"effect": "blinded node"')
    with pytest.raises(PlanFormatError, match=r"^not a plan: faults\.0\.effect: .*there is no effect 'blinded node'"):
        loads(text)
    with pytest.raises(PlanFormatError, match=r"^not a plan: faults\.0\.effect: Input should be a valid string"):
        loads(text.replace('"effect": "blinded node"', '"effect": 3'))


def settled_unlisted(effect: JobEffect, occurrence: Occurrence, problems: Problems) -> JobEffect:
    """What no plan could be read with."""
    del effect, occurrence, problems
    return BLINDED


def test_rules_that_settle_an_effect_which_no_family_lists_are_named(
    plan: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family_rules, "in_order", lambda: (Rules(order=1, settle=settled_unlisted),))
    with pytest.raises(RegistryError, match="give the effect 'blinded node', which no family lists"):
        plan(FAULT)


@pytest.mark.parametrize("effect", BUILT_IN.values(), ids=str)
def test_a_built_in_effect_says_more_than_its_name(effect: JobEffect) -> None:
    """By its name alone nothing asks for it."""
    assert is_known(effect)
    alike = [other for other in BUILT_IN.values() if replace(other, name=effect.name) == effect]
    assert alike == [effect]


@pytest.mark.parametrize("field", [one.name for one in fields(JobEffect) if one.name not in ("name", "noticed_as")])
def test_what_an_effect_says_decides_whether_it_is_felt(field: str) -> None:
    effects = [one for one in BUILT_IN.values() if getattr(one, field)]
    assert effects and not any(one.slows_at_most for one in effects)
    assert [one for one in BUILT_IN.values() if one.slows_at_most] == [NONE]
