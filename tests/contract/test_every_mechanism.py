"""Every registered mechanism says what the rest of the harness asks of one."""

from __future__ import annotations

from collections import Counter

import pytest

from chaos.base.registry import registry
from chaos.plan.budgets import PROFILES
from chaos.plan.mechanism import IMPLIES, NEEDS
from chaos.plan.registry import in_order, mechanisms

NAMES = registry("mechanisms").names()


def test_the_mechanisms_of_the_sdk_are_registered() -> None:
    assert set(NAMES) >= {"TTP", "UCE", "HCCE", "TRE", "ARF", "TSP", "RSC"}
    assert set(mechanisms()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_mechanism_has_the_name_that_it_is_registered_by(name: str) -> None:
    assert registry("mechanisms").load(name).name == name


@pytest.mark.parametrize("name", NAMES)
def test_every_timing_profile_has_budgets_of_its_phases_and_no_others(name: str) -> None:
    mechanism = mechanisms()[name]
    assert mechanism.phases
    assert set(mechanism.budgets) == set(PROFILES)
    for profile in mechanism.budgets.values():
        assert set(profile.phases) <= set(mechanism.phases)


@pytest.mark.parametrize("name", NAMES)
def test_its_needs_are_in_the_vendors_table(name: str) -> None:
    assert set(mechanisms()[name].needs) <= set(NEEDS)


def test_no_two_mechanisms_share_a_place() -> None:
    for places in (Counter(one.order for one in in_order()), Counter(one.listed for one in in_order())):
        assert max(places.values()) == 1


def test_the_last_mechanism_that_is_asked_ends_the_launch() -> None:
    assert [one.name for one in in_order() if one.ends_launch] == [in_order()[-1].name]


def test_what_a_mechanism_names_is_registered() -> None:
    named = {*IMPLIES.values(), *(other for one in in_order() for other in one.repairs_with)}
    assert named <= set(NAMES) and named
