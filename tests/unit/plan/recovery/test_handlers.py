"""A fault at a handler is planned only where its ranks enter that handler in the recovery that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.plan.recovery.handlers import sharing
from chaos.rehearsal.ttp.recover import Recover

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

ARF: dict[str, Any] = {"protection": ("ARF",), "agent": True}
BOTH: dict[str, Any] = {"protection": ("UCE", "ARF"), "agent": True}
PAIRS = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
"""Replica groups [0, 2] and [1, 3]."""
NONE = {"checkpoint": "none"}


def at_step(name: str, rank: int, kind: str = "kill", step: int = 5, **more: Any) -> dict[str, Any]:
    trigger = {"step": step, "phase": "forward"}
    return {"id": name, "kind": kind, "target": {"rank": rank}, "trigger": trigger, **more}


def at_handler(handler: str, *ranks: int, kind: str = "kill", name: str = "inside", after: str = "first") -> Any:
    return {"id": name, "kind": kind, "target": {"ranks": ranks}, "trigger": {"handler": handler, "after": after}}


@pytest.mark.parametrize(
    ("first", "inside", "job", "who"),
    [
        (at_step("first", 3), at_handler("repair", 1), ARF, "repair on ranks 0,3 only"),
        (at_step("first", 1), at_handler("repair", 0), ARF, "repair on ranks 1-2 only"),
        (at_step("first", 1), at_handler("clean", 0, 1, kind="hcce"), BOTH, "clean on ranks 0,2-3 only"),
        (at_step("first", 1), at_handler("rebuild_group", 1, kind="uce"), BOTH, "rebuild_group on ranks 0,2-3 only"),
        (at_step("first", 1, "uce"), at_handler("repair", 3), BOTH, "repair on ranks 1-2 only"),
        (at_step("first", 1), at_handler("save_ckpt", 2), {}, "save_ckpt on rank 0 only"),
        (at_step("first", 0), at_handler("save_ckpt", 2), {"controller": "outside"}, "save_ckpt on rank 1 only"),
    ],
)
def test_where_it_does_not_the_fault_is_refused_with_the_ranks_that_do(
    plan: Planner, first: Any, inside: Any, job: dict[str, Any], who: str
) -> None:
    text = plan.refused(first, inside, job=job, expect=NONE)
    assert "is never reached on" in text and f"calls handler {who}" in text


def test_the_hint_names_no_rank_that_is_lost_already(plan: Planner) -> None:
    text = plan.refused(at_step("first", 3), at_handler("repair", 1), job=ARF)
    assert "target rank 0" in text and "target ranks" not in text


def test_of_several_replica_groups_the_lowest_of_each_saves_and_the_last_of_them_renames(plan: Planner) -> None:
    first = at_step("first", 0)
    job = {"controller": "outside"}
    for handler, ranks in (("save_ckpt", (2,)), ("save_ckpt", (1, 2)), ("rename", (2,))):
        assert (
            plan(first, at_handler(handler, *ranks), job=job, cluster=PAIRS, expect=NONE).response.mechanism == "none"
        )
    assert "rename on rank 2 only" in plan.refused(first, at_handler("rename", 1), job=job, cluster=PAIRS, expect=NONE)


@pytest.mark.parametrize("job", [ARF, BOTH])
def test_nobody_registers_a_handler_for_the_rollback(plan: Planner, job: dict[str, Any]) -> None:
    text = plan.refused(at_step("first", 2), at_handler("rollback", 1), job=job, expect=NONE)
    assert "is never reached" in text and "calls handler rollback" in text


def test_behind_the_handler_at_which_a_recovery_fails_none_is_called(plan: Planner) -> None:
    faults = (at_step("first", 2), at_handler("repair", 3, name="late"), at_handler("stop", 1))
    text = plan.refused(*faults, job=ARF)
    assert (
        "fault 'late' is never reached" in text and "once ARF has failed at handler stop, calls handler repair" in text
    )


def test_a_fault_behind_the_one_at_which_an_online_repair_fails_meets_the_replacement_that_follows(
    plan: Planner,
) -> None:
    error, unclean = at_step("first", 1, "uce"), at_handler("clean", 1, kind="uce", name="unclean")
    death = at_handler("repair", 2, name="death", after="unclean")
    found = plan(error, unclean, death, job=BOTH)
    tried = [(recovery.mechanism, recovery.succeeds) for recovery in found.response.recoveries]
    assert tried == [("UCE", False), ("ARF", False), ("TTP", True)]
    stopped = at_handler("stop", 2, name="death", after="unclean")  # the online repair has stopped all ranks before
    assert "is never reached" in plan.refused(error, unclean, stopped, job=BOTH)


def test_without_lost_memory_nothing_is_repaired(plan: Planner) -> None:
    low = at_step("first", 1, "uce", parameters={"strategy": "low level"})
    for first in (low, at_step("first", 1, "hcce")):
        job = {"protection": ("UCE", "HCCE")}
        assert "calls handler repair" in plan.refused(first, at_handler("repair", 1), job=job, expect=NONE)


@pytest.mark.parametrize(("kind", "handler"), [("mark", "stop"), ("full", "clean"), ("terminate", "save_ckpt")])
def test_a_fault_by_which_no_handler_fails_is_refused(plan: Planner, kind: str, handler: str) -> None:
    text = plan.refused(at_step("first", 2), at_handler(handler, 0, kind=kind), job=ARF, expect=NONE)
    assert f"does not make handler {handler} fail" in text


@given(
    size=st.integers(1, 5),
    groups=st.integers(1, 3),
    lost=st.frozensets(st.integers(0, 14), max_size=8),
)
def test_who_gives_a_state_is_whom_the_stand_in_asks(size: int, groups: int, lost: frozenset[int]) -> None:
    members = [tuple(range(first, size * groups, groups)) for first in range(groups)]
    recover = object.__new__(Recover)
    recover._lost = set(lost)
    expected = set()
    for group in members:
        for rank in lost.intersection(group):
            source = recover._source(group, rank)
            expected |= {rank} if source is None else {rank, source}
    assert sharing(members, lost) == tuple(sorted(expected))
