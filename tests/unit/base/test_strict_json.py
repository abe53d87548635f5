"""What Python's JSON parser takes beyond the standard, or fails on, is a ValueError."""

from __future__ import annotations

import math

import pytest

from chaos.base.strict_json import parse


def test_what_json_holds_is_read() -> None:
    assert parse(b'{"a": [1, -2.5, 1e3, true, null, "x"]}') == {"a": [1, -2.5, 1e3, True, None, "x"]}
    assert parse(str(2**128)) == 2**128
    assert math.isnan(parse("[NaN, Infinity, 1e999]", finite=False)[0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("1e999", "too large for a float"),
        ("9" * 5000, "5000 digits"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff", "decode"),
        ("{", "Expecting"),
    ],
)
def test_anything_else_is_a_value_error(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)
