"""Survivors of every replica group are found, and groups that lost their last copy are named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaos.plan.topology.survive import survive

GROUPS = ((0, 4), (1, 5), (2, 6), (3, 7))


def test_survivors_of_every_group_may_save() -> None:
    left = survive(GROUPS, {1, 6})
    assert left.entitled == ((0, 4), (5,), (2,), (3, 7))
    assert left.complete


def test_a_group_without_a_survivor_is_lost() -> None:
    left = survive(GROUPS, {1, 5, 3})
    assert left.lost == (1,)
    assert not left.complete


@given(dead=st.sets(st.integers(0, 7)))
def test_no_dead_rank_survives_and_no_other_is_missing(dead: set[int]) -> None:
    left = survive(GROUPS, dead)
    assert {rank for group in left.entitled for rank in group} == set(range(8)) - dead
    assert left.complete == all(set(group) - dead for group in GROUPS)
