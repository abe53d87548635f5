"""Durations carry a unit, and what is written is read again."""

from __future__ import annotations

import pytest

from chaos.scenario.models.duration import parse_duration, show_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5.0), ("200ms", 0.2), ("2m", 120.0), ("2 min", 120.0), ("1.5h", 5400.0), (" 0s ", 0.0)],
)
def test_a_duration_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["5", 5, True, None, "-1s", "1e3s", "s", "5 s s", "\u0665s", "9" * 400 + "s", ["5s"]])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse_duration(value)


@pytest.mark.parametrize("seconds", [0.0, 0.2, 5.0, 90.0, 600.0, 123456.75, 1e6, 366 * 86400.0, 0.000001])
def test_what_is_written_is_read_again(seconds: float) -> None:
    assert parse_duration(show_duration(seconds)) == seconds
