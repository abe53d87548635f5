"""Parameters that a fault kind does not have, that are out of range or that are missing are refused by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.plan.problems import Problems
from chaos.plan.rules.parameters import Parameter, check_parameters
from tests.unit.plan.conftest import KnownLines

KNOWN = {
    "slow": {
        "delay": Parameter("how long", least=0.1, most=10, required=True),
        "count": Parameter("how many", least=1, most=4, whole=True, default=2),
        "where": Parameter("on which side", words=("here", "there")),
        "at": Parameter("at what", words=("door", "window"), least=1, most=9, whole=True),
        "on": Parameter("which", least=0, most=3, several=True),
    }
}


@dataclass
class Fault:
    id: str = "first"
    kind: str = "slow"
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass
class OfPlan:
    fault: Fault
    path: str = "faults.0"


def said(kind: str = "slow", **parameters: Any) -> list[str]:
    problems = Problems("x.yaml", KnownLines({}))
    check_parameters([OfPlan(Fault(kind=kind, parameters=parameters))], KNOWN, problems)  # type: ignore[list-item]
    return [problem.message for problem in problems.error().problems]


def test_what_is_in_range_is_taken_and_other_kinds_look_at_their_own() -> None:
    assert (
        said(delay=0.1)
        == said(delay=10, count=4, where="here", on=[0, 3], at="door")
        == said(delay=1, at=9)
        == said("other", anything=1)
        == []
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "fault 'first' does not say delay: how long"),
        ({"delay": 0.05}, "delay of a slow is a number from 0.1 to 10, not 0.05"),
        ({"delay": True}, "delay of a slow is a number from 0.1 to 10, not True"),
        ({"delay": "1"}, "delay of a slow is a number from 0.1 to 10, not '1'"),
        ({"delay": 1, "count": 1.5}, "count of a slow is a whole number from 1 to 4, not 1.5"),
        ({"delay": 1, "where": "up"}, "where of a slow is one of here, there, not 'up'"),
        *(
            ({"delay": 1, "at": at}, f"at of a slow is one of door, window, or a whole number from 1 to 9, not {at!r}")
            for at in ("wall", "1", 0, 10, True, 1.5)
        ),
        *(
            ({"delay": 1, "on": on}, f"on of a slow is a list of different whole numbers from 0 to 3, not {on}")
            for on in ([], [4], [1, 1], [True], [0.5], 1)
        ),
        ({"delay": 1, "dealy": 2}, "a slow has no parameter 'dealy'"),
    ],
)
def test_what_is_not_is_refused(given: dict[str, Any], message: str) -> None:
    assert said(**given) == [message]


@pytest.mark.parametrize("kind", ["slow-storage", "storage-stall", "cpu-load", "cpu-quota", "fd-limit", "memory-load"])
def test_every_condition_says_what_it_has(kind: str) -> None:
    parameters = registry("faults").load(kind).parameters
    assert parameters["seconds"].takes(1) and not parameters["seconds"].takes(0)
    assert all(parameter.about for parameter in parameters.values())
