"""JSON as its standard has it, and no more: the extensions of Python's parser are refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

_Pairs = Callable[[list[tuple[str, Any]]], Any]

MAX_DIGITS = 40
"""Digits of a whole number, its sign included: 128 bits, and far from the limit of a float."""


def parse(text: str | bytes, *, pairs: _Pairs | None = None, finite: bool = True) -> Any:
    """Return the value of a JSON text. ``pairs`` makes an object of its pairs, by default a dict.

    With ``finite=False`` NaN and Infinity are accepted, which Python's own writer writes. Otherwise they raise
    ValueError, as does text that is not JSON, is nested too deep for the parser, or has a number that is too large for
    a float.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    elif text.startswith("\ufeff"):
        raise ValueError("the decoded text begins with a byte order mark")
    try:
        return _decoder(pairs, finite).decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


@cache
def _decoder(pairs: _Pairs | None, finite: bool) -> json.JSONDecoder:
    """Return the decoder for these settings: json.loads would make it anew for each line of a history."""
    constant, number = (_refuse, _finite) if finite else (float, float)
    return json.JSONDecoder(parse_constant=constant, parse_float=number, parse_int=_whole, object_pairs_hook=pairs)


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
