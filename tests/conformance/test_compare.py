"""The comparison itself: a story that differs in one thing is told apart by that thing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.compare import differences, order, said, without_end
from tests.conformance.driver import Story
from tests.conformance.training import undisturbed

pytestmark = pytest.mark.processes


def line(at: float, kind: str, name: str, *values: Any) -> dict[str, Any]:
    return {"at": at, "wall": at, "late": 0.0, "kind": kind, "name": name, "values": list(values)}


def story() -> Story:
    """Two ranks; rank 1 has an error and is repaired."""
    records = {}
    for rank in ("0", "1"):
        common = [f"arguments of {rank}"]
        records[rank] = [
            line(1.0, "handler", "stop", *common, "context of stop"),
            line(1.1, "returned", "stop", None),
            line(1.2, "call", "tft_report_error", ["RS_UCE" if rank == "1" else "RS_NORMAL"], None),
            line(2.0, "handler", "rollback", 5, *common, "context of rollback"),
            line(2.1, "returned", "rollback", None),
            line(9.0, "end", undisturbed(2, 10), 10),
        ]
    return Story({"0": 0, "1": 0}, records, [], {}, Path())


EXPECTED: dict[str, Any] = {
    "job": {"ranks": 2},
    "exits": [0, 0],
    "equal": True,
    "order": ["stop", "rollback"],
    "handlers": {0: [["stop"], ["rollback", 5]]},
    "calls": {1: [["tft_report_error", ["RS_UCE"]]]},
}


def change(rank: str, number: int, **fields: Any) -> Callable[[Story], None]:
    return lambda told: told.records[rank][number].update(fields)


def test_a_story_as_expected_differs_in_nothing() -> None:
    assert differences(EXPECTED, story()) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda told: told.exits.update({"1": 1}), "exit codes"),
        (lambda told: told.saved.update({5: [0]}), "saved"),
        (change("0", 1, at=2.05), "order of handlers"),
        (change("0", 3, values=[4, "arguments of 0", "context of rollback"]), "handlers of rank 0"),
        (change("0", 3, values=[5, "arguments of 1", "context of rollback"]), "rollback of rank 0 got"),
        (change("1", 2, values=[[4], None]), "calls of rank 1"),
        (change("1", 5, name="another digest"), "final states"),
        (change("1", 5, values=[9]), "final states"),
    ],
)
def test_whatever_differs_is_named(spoil: Callable[[Story], None], words: str) -> None:
    told = copy.deepcopy(story())
    spoil(told)
    found = differences(EXPECTED, told)
    assert any(one.startswith(words) for one in found), found


def test_a_phase_that_begins_on_one_rank_before_it_has_ended_on_another_comes_twice() -> None:
    answer = story()
    answer.records["1"][3]["at"] = 1.05
    assert order(answer) == ["stop", "rollback", "stop", "rollback"]


@pytest.mark.parametrize("begun", [1.05, 2.0, 2.2], ids=["early", "in time", "late"])
def test_a_handler_that_nobody_awaits_may_come_before_or_after_those_of_other_ranks(begun: float) -> None:
    answer = story()
    answer.records["1"][3]["at"] = begun
    answer.records["agent"] = [line(1.0, "agent", "report_fault_ranks", {})]
    assert order(answer, {1: ["rollback"]}) == ["stop", "rollback"]
    assert differences({**EXPECTED, "unawaited": {1: ["rollback"]}}, answer) == []


def test_a_handler_that_nobody_awaits_has_its_place_within_its_own_rank() -> None:
    answer = story()
    lines = answer.records["1"]
    lines[0:2], lines[3:5] = lines[3:5], lines[0:2]
    found = differences({**EXPECTED, "unawaited": {1: ["rollback"]}}, answer)
    assert any(one.startswith("order in rank 1: expected ['stop', 'rollback'], seen ['rollback', ") for one in found)


def test_a_handler_that_another_rank_awaits_keeps_its_place() -> None:
    answer = story()
    answer.records["0"][3]["at"] = 1.05
    assert order(answer, {1: ["rollback"]}) == ["stop", "rollback", "stop", "rollback"]
    assert differences({**EXPECTED, "unawaited": {1: ["rollback"]}}, answer) != []


def test_the_lines_that_a_buffer_may_lose_are_not_compared() -> None:
    assert without_end(["NORMAL", "ABNORMAL", "EXIT", "FINAL"]) == without_end(["NORMAL", "ABNORMAL"])
    assert without_end(["NORMAL", "FINAL", "DUMP"]) == ["NORMAL", "FINAL", "DUMP"]


def test_faults_that_are_told_again_after_the_stop_are_not_compared() -> None:
    answer = story()
    answer.records["0"] += [
        line(3.0, "agent", name, {}) for name in ("report_fault_ranks", "on_global_rank", "report_fault_ranks")
    ]
    assert [one[0] for one in said(answer)] == ["report_fault_ranks", "on_global_rank"]
