"""Plain YAML scalars by the core schema of YAML 1.2 (yaml.org/spec/1.2.2, section 10.3).

YAML 1.1 reads ``on`` as true, ``010`` as 8, ``1:30`` as 90 and ``2024-01-01`` as a date. Here the first stays text,
the second is 10, the others stay text.
"""

from __future__ import annotations

import math
import re

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_MAY_BE_NUMBER = frozenset("+-.0123456789")
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o([0-7]+)|0x([0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LARGEST = 2**63


def resolve(text: str) -> str | int | float | bool | None:
    """Return the value of a scalar that is written without quotes.

    Raises ValueError on a number that does not fit 64 bits.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAY_BE_NUMBER:
        return text
    if _DECIMAL.fullmatch(text):
        # Twenty digits do not fit anyway, and Python refuses to convert some thousands of them.
        digits = text.lstrip("+-").lstrip("0") or "0"
        magnitude = int(digits) if len(digits) < 20 else _LARGEST + 1
        return _fitting(-magnitude if text[0] == "-" else magnitude)
    if match := _OTHER_BASE.fullmatch(text):
        return _fitting(int(match[1], 8) if match[1] else int(match[2], 16))
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ValueError("number is too large")
        return number
    return text


def _fitting(number: int) -> int:
    if not -_LARGEST <= number < _LARGEST:
        raise ValueError("whole number does not fit 64 bits")
    return number
