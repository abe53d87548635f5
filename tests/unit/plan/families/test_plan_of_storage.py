"""Faults of the storage: the save that they break off, and the schedules in which nobody can say what happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.plan.conftest import Planner

NONE = {"checkpoint": "none"}
RANK_0 = {"rank": 0}


def storage(kind: str, step: int, phase: str = "step.begin", rank: int = 0) -> dict[str, Any]:
    return {"id": "disk", "kind": kind, "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}}


def kill(step: int, phase: str = "step.begin") -> dict[str, Any]:
    return {"id": "kill", "kind": "kill", "target": {"rank": 2}, "trigger": {"step": step, "phase": phase}}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("full", "has taken the room on the storage"),
        ("read-only", "has made the storage read-only"),
        ("broken", "has made every access to the storage an error"),
        ("gone", "has taken the directory away"),
        ("denied", "has taken the permission to write on the storage"),
    ],
)
def test_the_save_is_tried_and_fails(plan: Planner, kind: str, words: str) -> None:
    made = plan(storage(kind, 3), kill(5), expect=NONE)
    assert (made.response.mechanism, made.checkpoint, made.resume.resumes) == ("none", None, False)
    (tried,) = made.response.recoveries
    assert (tried.mechanism, tried.succeeds, tried.step, tried.faults) == ("TTP", False, 4, ("kill",))
    assert any(f"fault disk {words}" in reason for reason in made.explanation.reasons)


def test_a_checkpoint_that_is_expected_all_the_same_is_refused(plan: Planner) -> None:
    text = plan.refused(storage("full", 3), kill(5))
    assert "the save is interrupted: fault disk has taken the room on the storage" in text
    assert "write expect.checkpoint: none" in text


def test_where_nobody_saves_it_changes_nothing(plan: Planner) -> None:
    made = plan(storage("full", 3))
    assert (made.response.mechanism, made.response.recoveries) == (None, ())


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ((4, "step.begin"), (5, "step.begin"), True),
        ((4, "allreduce.enter"), (4, "optimizer.update"), True),
        ((4, "step.begin"), (4, "allreduce.enter"), False),
        ((4, "optimizer.update"), (5, "forward"), False),
        ((4, "optimizer.update"), (5, "optimizer.update"), True),
        ((4, "step.end"), (6, "step.begin"), True),
    ],
)
def test_an_all_reduce_must_lie_between_the_fault_and_the_loss(
    plan: Planner, first: tuple[int, str], second: tuple[int, str], apart: bool
) -> None:
    if apart:
        assert plan(storage("full", *first), kill(*second), expect=NONE).response.mechanism == "none"
    else:
        text = plan.refused(storage("full", *first), kill(*second), expect=NONE)
        assert "may come before the end-of-life checkpoint or after it" in text


def test_an_open_moment_may_come_too_late(plan: Planner) -> None:
    late = {"kind": "full", "target": RANK_0, "trigger": {"after": "kill"}}
    assert "may come before the end-of-life checkpoint or after it" in plan.refused(late, kill(5), expect=NONE)


@pytest.mark.parametrize(("interval", "due"), [(4, 4), (3, 3), (1, 3)])
def test_a_periodic_checkpoint_behind_it_is_refused(plan: Planner, interval: int, due: int) -> None:
    text = plan.refused(storage("full", 3), kill(5), expect=NONE, job={"checkpoint_interval": interval})
    assert f"comes before the periodic checkpoint of step {due}" in text


def test_a_periodic_checkpoint_before_it_or_behind_the_loss_is_not(plan: Planner) -> None:
    assert plan(storage("full", 4), kill(6), expect=NONE, job={"checkpoint_interval": 3}).response.mechanism == "none"


def test_a_job_that_does_not_say_where_it_saves_cannot_be_hit(plan: Planner) -> None:
    plan.traits = replace(plan.traits, storage=None)
    assert "does not say where it saves" in plan.refused(storage("read-only", 3), kill(5), expect=NONE)


@pytest.mark.parametrize(
    ("kind", "handler"), [("full", "save_ckpt"), ("read-only", "save_ckpt"), ("read-only", "rename")]
)
def test_it_can_be_made_at_the_handler_itself(plan: Planner, kind: str, handler: str) -> None:
    at_handler = {"id": "disk", "kind": kind, "target": RANK_0, "trigger": {"handler": handler}}
    made = plan(at_handler, kill(5), expect=NONE)
    assert [(recovery.mechanism, recovery.succeeds) for recovery in made.response.recoveries] == [("TTP", False)]


SPLIT = {"ranks": 4, "nodes": 2, "parallel": {"data_parallel": 2, "model_parallel": 2}}
"""Ranks 0 and 2, and 1 and 3, hold the same; 0 and 1 are on node 0."""


def volume(node: int) -> dict[str, Any]:
    return {"id": "volume", "kind": "volume", "target": {"node": node}, "trigger": {"step": 3}}


def lost(**target: Any) -> dict[str, Any]:
    return {"id": "kill", "kind": "kill", "target": target, "trigger": {"step": 5}}


def test_a_volume_that_is_gone_where_nobody_saves_changes_nothing(plan: Planner) -> None:
    made = plan(volume(1), lost(node=1), cluster=SPLIT)
    assert [(recovery.mechanism, recovery.succeeds, recovery.step) for recovery in made.response.recoveries] == [
        ("TTP", True, 4)
    ]
    assert made.checkpoint is not None and made.checkpoint.savers == (0, 1)


def test_a_volume_that_is_gone_where_some_must_save_breaks_the_save_off(plan: Planner) -> None:
    made = plan(volume(0), lost(node=1), cluster=SPLIT, expect=NONE)
    assert [(recovery.mechanism, recovery.succeeds) for recovery in made.response.recoveries] == [("TTP", False)]
    assert any("fault volume has taken the volume from its node" in reason for reason in made.explanation.reasons)
    made = plan(volume(0), lost(rank=2), cluster=SPLIT, expect=NONE)  # of the other group somebody has it
    assert [(recovery.mechanism, recovery.succeeds) for recovery in made.response.recoveries] == [("TTP", False)]


@pytest.mark.parametrize(("node", "left"), [(0, "ranks 0,2"), (1, "ranks 1,3")])
def test_a_group_of_which_some_have_the_volume_is_refused(plan: Planner, node: int, left: str) -> None:
    text = plan.refused(volume(node), lost(rank=1 if node == 0 else 2), cluster=SPLIT)
    assert f"fault 'volume' takes the storage from some of {left}, which hold the same state" in text


def test_renaming_needs_no_room(plan: Planner) -> None:
    at_handler = {"id": "disk", "kind": "full", "target": RANK_0, "trigger": {"handler": "rename"}}
    assert "changes nothing at handler rename" in plan.refused(at_handler, kill(5), expect=NONE)


@pytest.mark.parametrize("phase", [None, "checkpoint.begin", "checkpoint.write", "checkpoint.end"])
def test_a_kill_inside_the_save_breaks_it_off(plan: Planner, phase: str | None) -> None:
    trigger = {"handler": "save_ckpt", "after": "kill", **({"phase": phase} if phase else {})}
    inside = {"id": "in-save", "kind": "kill", "target": {"rank": 0}, "trigger": trigger}
    made = plan(kill(5), inside, expect=NONE)
    (tried,) = made.response.recoveries
    assert (tried.mechanism, tried.succeeds, tried.step) == ("TTP", False, 4)
    assert made.faults[1].trigger == trigger
    where = f"{phase} in handler save_ckpt" if phase else "handler save_ckpt"
    assert any(f"fault in-save strikes rank 0 at {where}" in reason for reason in made.explanation.reasons)
