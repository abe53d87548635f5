"""Of an exception the first of its chain is kept, which the last one may hide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from chaos.agent.errors import error_fields, record_uncaught
from chaos.agent.record import Record
from tests.unit.agent.conftest import Events


def caught(raising: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as info:
        raising()
    return info.value


class DeviceError(RuntimeError):
    pass


def alone() -> None:
    raise DeviceError("UCEError occurred")


def in_handler() -> None:
    try:
        alone()
    except RuntimeError:
        raise AttributeError("no attribute 'repair'")  # noqa: B904


def wrapped() -> None:
    try:
        alone()
    except RuntimeError as error:
        raise ValueError("it failed") from error


def masked() -> None:
    try:
        in_handler()
    except AttributeError:
        raise ValueError("it failed") from None


def in_a_ring() -> None:
    first, second = ValueError("1"), KeyError("2")
    first.__context__, second.__context__ = second, first
    raise first


class Speechless(ValueError):
    def __str__(self) -> str:
        raise TypeError


FIRST = {"first": "DeviceError: UCEError occurred", "first_base": "RuntimeError"}


@pytest.mark.parametrize(
    ("raising", "fields"),
    [
        (alone, {"error": "DeviceError: UCEError occurred", "base": "RuntimeError"}),
        (
            in_handler,
            {
                "error": "AttributeError: no attribute 'repair'",
                "base": "AttributeError",
                **FIRST,
                "wrapped": False,
            },
        ),
        (wrapped, {"error": "ValueError: it failed", "base": "ValueError", **FIRST, "wrapped": True}),
        (masked, {"error": "ValueError: it failed", "base": "ValueError", **FIRST, "wrapped": False}),
    ],
)
def test_the_first_of_a_chain_is_told_beside_the_last(raising: Callable[[], Any], fields: dict[str, Any]) -> None:
    assert error_fields(caught(raising)) == fields


def test_what_is_told_is_bounded() -> None:
    assert error_fields(None) == {}
    assert len(error_fields(ValueError("x" * 10_000))["error"]) == 300
    assert error_fields(Speechless())["error"] == "Speechless: its text cannot be made"
    assert error_fields(caught(in_a_ring))["first"] == "KeyError: '2'"


def test_an_exception_that_ends_the_process_is_recorded_and_told_as_before(
    record: Record, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: entries.append(error))
    record_uncaught(record)
    error = caught(in_handler)
    sys.excepthook(type(error), error, None)
    assert entries == [error]
    assert [event.data for event in events("error.uncaught")] == [error_fields(error)]
