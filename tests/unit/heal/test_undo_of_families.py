"""An undo action of another package is found by its name, and never in place of a built-in one."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.registry import NOUNS, Registry, installed_points
from chaos.faults.action import CannotUndo
from chaos.faults.family import Undo
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, in_order, undo_step
from chaos.heal.undo_of_families import attached_form
from chaos.history.ledger import Ledger, UndoStep

CONTEXT = UndoContext("token", SYSTEM_CLOCK)


def put_back(step: UndoStep, context: UndoContext) -> str:
    return f"put back {step.arguments['what']} of {context.token}"


def refuse(step: UndoStep, context: UndoContext) -> str:
    raise CannotUndo("the tool is not there: install it")


def put_back_last(step: UndoStep, context: UndoContext) -> str:
    return "put back at last"


last = Undo(f"{__name__}:put_back_last", after_processes=True)
nothing = None


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "own": "put_back",
        "refusing": "refuse",
        "last": "last",
        "gone": "not_there",
        "none": "nothing",
        "end-job": "put_back",
    }
    monkeypatch.setattr("chaos.heal.undo_of_families.registry", lambda group: registered(names))


def registered(names: dict[str, str]) -> Registry:
    """This project's families, and another package that registers these names."""
    points = [EntryPoint(name, f"{__name__}:{value}", "chaos.undo") for name, value in names.items()]
    return Registry(
        "chaos.undo",
        NOUNS["chaos.undo"],
        source=lambda group: points if group == "chaos.undo" else installed_points(group),
    )


def undo(tmp_path: Path, action: str, **arguments: Any) -> tuple[bool, str, int]:
    """Whether it was undone, how, and how many steps are open afterwards."""
    ledger = Ledger(tmp_path / "undo.jsonl")
    step = ledger.record(UndoStep("s", "f", action, arguments, "by hand"))
    undone = undo_step(ledger, step, UNDO_ACTIONS, CONTEXT)
    return undone.ok, undone.how, len(ledger.read().open)


def test_its_action_is_called_and_its_step_closed(tmp_path: Path) -> None:
    assert undo(tmp_path, "own", what="a rule") == (True, "put back a rule of token", 0)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("refusing", "the tool is not there: install it"),
        ("own", "KeyError: 'what'; by hand"),
        ("gone", "which cannot be loaded"),
        ("none", "cannot be called"),
        ("unknown", "there is no undo action 'unknown' here: install the package"),
    ],
)
def test_one_that_cannot_undo_leaves_its_step_open(tmp_path: Path, action: str, why: str) -> None:
    ok, how, left = undo(tmp_path, action)
    assert (ok, left) == (False, 1)
    assert why in how


@pytest.mark.parametrize(
    ("action", "arguments", "how"),
    [("end-job", {"run": "token"}, "no process of the run was left"), ("note-kept", {"path": "/none"}, "nothing was")],
)
def test_a_built_in_action_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, arguments: dict[str, Any], how: str
) -> None:
    taken = registered({"end-job": "put_back", "note-kept": "put_back"})
    monkeypatch.setattr("chaos.heal.undo_of_families.registry", lambda group: taken)
    ok, said, _ = undo(tmp_path, action, what="mine", **arguments)
    assert ok and said.startswith(how)


def test_a_step_has_another_form_for_an_attached_job_where_its_action_has_one() -> None:
    step = UndoStep("s", "f", "restore-limit", {"pid": 7, "soft": 64}, "give it back")
    formed = attached_form(step, 3)
    assert (formed.action, formed.arguments) == ("restore-limit-adopted", {"pid": 7, "soft": 64, "rank": 3})
    assert formed.note == "give it back (prlimit --pid 7 --nofile=64: does it by hand)"
    for action in ("own", "end-job", "unknown", "switch-off"):
        assert attached_form(UndoStep("s", "f", action), 3) == UndoStep("s", "f", action)


def test_one_that_waits_for_the_end_of_the_processes_comes_behind_them() -> None:
    steps = [UndoStep(name, "f", name) for name in ("last", "unknown", "own", "remove-directory")]
    assert [step.action for step in in_order(steps)] == ["unknown", "own", "last", "remove-directory"]
