"""What a memory error takes from a rank, and what the device tells of its time."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import chaos.rehearsal
from chaos.rehearsal.device.memory import HIGH_LEVEL, LOW_LEVEL, Memory

UCE = "UCEError error occurs when execute, error_code=507053."
ECC = "UCEError error occurs when execute, error_code=507054. HBM MULTI BIT ECC, device_id=1, time us={}."


class Parameter:
    """A parameter of the network."""

    def __init__(self, values: Any) -> None:
        self.values = numpy.asarray(values)

    def asnumpy(self) -> Any:
        return self.values

    def set_data(self, values: Any) -> None:
        self.values = values


@pytest.fixture
def barriers() -> Any:
    weight, counter = Parameter([1.0, 2.0]), Parameter(numpy.int32(7))
    return SimpleNamespace(parameters=[("weight", weight), ("global_step", counter)], on_raise=None)


def test_a_memory_error_takes_the_weights_and_says_how_many(barriers: Any) -> None:
    memory = Memory(barriers, Parameter.set_data)
    assert barriers.on_raise({"text": UCE}) == {"parameters": 1}
    assert numpy.isnan(barriers.parameters[0][1].values).all()
    assert barriers.parameters[1][1].values == 7
    assert memory.strategy() == HIGH_LEVEL


def test_a_low_level_error_takes_nothing(barriers: Any) -> None:
    memory = Memory(barriers, Parameter.set_data)
    assert memory.suffer({"text": UCE, "strategy": LOW_LEVEL}) == {"parameters": 0}
    assert list(barriers.parameters[0][1].values) == [1.0, 2.0]
    assert memory.strategy() == LOW_LEVEL


def test_another_error_while_the_device_is_cleaned_is_in_what_it_answers(barriers: Any) -> None:
    memory = Memory(barriers, Parameter.set_data)
    assert "answered" not in memory.suffer({"text": UCE, "phase": "handler.clean"})  # nobody would ask it
    memory.update_ends()
    memory.suffer({"text": UCE, "phase": "forward"})
    assert memory.suffer({"text": UCE, "phase": "handler.clean"}) == {"parameters": 1, "answered": True}
    assert memory.strategy() == "RS_NORMAL"
    memory.update_ends()
    assert "answered" not in memory.suffer({"text": UCE, "phase": "handler.clean"})


def test_an_error_of_communication_is_none_of_the_memory(barriers: Any) -> None:
    memory = Memory(barriers, Parameter.set_data)
    assert memory.suffer({"text": "HCCEError error occurs when execute, error_code=507904."}) == {}
    assert list(barriers.parameters[0][1].values) == [1.0, 2.0]
    assert memory.timestamps() == [0, 0, 0]


def test_the_device_tells_when_the_error_came_and_when_the_update_began_and_ended(barriers: Any) -> None:
    memory = Memory(barriers, Parameter.set_data)
    memory.update_begins()
    memory.update_ends()
    _, began, ended = memory.timestamps()
    assert 0 < began <= ended
    memory.suffer({"text": ECC.format(ended + 5)})
    assert memory.timestamps() == [ended + 5, began, ended]


def test_an_error_raised_as_the_update_begins_is_of_its_first_access(barriers: Any) -> None:
    memory = Memory(barriers, Parameter.set_data)
    memory.update_begins()
    memory.update_ends()
    before = memory.timestamps()[2]
    memory._update_began = before + 10  # the next update has begun
    memory.suffer({"text": ECC.format(before + 20)})
    assert memory.timestamps() == [before + 20, before + 20, before]


def repairable(error: int, start: int, end: int) -> bool:
    sdk = str(next(iter(chaos.rehearsal.__path__))) + "/sdk"
    sys.path.insert(0, sdk)
    try:
        from mindio_ttp import framework_ttp
    finally:
        sys.path.remove(sdk)
    return bool(framework_ttp.tft_can_do_uce_repair(error, start, end))


@pytest.mark.parametrize(
    ("error", "start", "end", "can"),
    [
        (30, 10, 20, True),  # the update was over
        (15, 10, 20, False),  # in the middle of it
        (10, 10, 20, False),
        (20, 10, 20, False),
        (25, 22, 20, False),  # the next update had begun and was not over
        (22, 22, 20, False),  # it failed at its first access
        (5, 10, 20, False),  # before it: the update has used what was broken
        (0, 10, 20, False),  # nobody knows when
        (5, 0, 0, False),  # there has been no update
    ],
)
def test_an_error_is_repairable_only_when_the_update_was_over(error: int, start: int, end: int, can: bool) -> None:
    assert repairable(error, start, end) is can
