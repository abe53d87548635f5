"""JSON as its standard has it, and no more: the extensions of Python's parser are refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

MAX_DIGITS = 40
"""Digits of a whole number, its sign included: 128 bits, and far from the limit of a float."""


def parse(
    text: str | bytes, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None, finite: bool = True
) -> Any:
    """Return the value of a JSON text. ``pairs`` makes an object of its pairs, by default a dict.

    With ``finite=False`` NaN and Infinity are accepted, which Python's own writer writes. Otherwise they raise
    ValueError, as does text that is not JSON, is nested too deep for the parser, or has a number that is too large for
    a float.
    """
    constant, number = (_refuse, _finite) if finite else (float, float)
    try:
        return json.loads(text, parse_constant=constant, parse_float=number, parse_int=_whole, object_pairs_hook=pairs)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:MAX_DIGITS]} is too large for a float")
    return value


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits: at most {MAX_DIGITS} are allowed")
    return int(text)
