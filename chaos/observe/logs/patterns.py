"""Tables of the lines that a reader knows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chaos.observe.logs.log_event import LogEvent

_MAX_DIGITS = 18  # a longer number is no rank, step or count, and would not fit into 64 bits
_INTEGER = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d{1,18}\.\d{1,18}")
_LIST = re.compile(r"\[[\[\]\d, -]{0,65536}\]")
_OWN = ("rank", "step")
_QUOTES = "'\"`\u2018\u201c"
_NO_RANK = 2**31 - 1
"""Numbers from here on mean that there is no rank: programs write the largest number they have."""


@dataclass(frozen=True)
class Known:
    """One line that a reader knows.

    ``literal`` is a part of every such line: looking for it is much cheaper than the expression. The expression is
    searched in the message, after the prefix. Its groups become fields of the event, ``rank`` and ``step`` its own
    attributes. Numbers become int or float and lists of numbers lists, except in a group ``..._text``, which stays as
    it is. A group ``x_list`` is a text with commas and becomes the list ``x``. A program's number for no
    rank (4294967295) becomes the text ``rank_text``, or ``x_rank_text`` of a group ``x_rank``.
    """

    kind: str
    literal: str
    pattern: re.Pattern[str]


def known(kind: str, literal: str, pattern: str) -> Known:
    """Return a ``Known`` from the text of its expression."""
    return Known(kind, literal, re.compile(pattern))


def find_event(
    table: Sequence[Known], message: str, wall_ns: int | None, pid: int | None, head: re.Pattern[str] | None = None
) -> LogEvent | None:
    """Return the event of the first entry in ``table`` that the message fits, or None.

    Text in quotation marks is quoted, and states nothing. With ``head`` the message has to begin with the entry's own
    words, or with text that ``head`` allows before them: for programs with no other mark in their lines.
    """
    for entry in table:
        if entry.literal in message and (match := entry.pattern.search(message)):
            if is_quoted(message, match.start()) or not _begins(entry, message, match.start(), head):
                continue
            groups = {name: text for name, text in match.groupdict().items() if text is not None}
            values = dict(_field(name, text) for name, text in groups.items())
            fields = {name: value for name, value in values.items() if name not in _OWN}
            return LogEvent(
                entry.kind, wall_ns, _natural(values.get("rank")), _natural(values.get("step")), pid, fields
            )
    return None


def is_quoted(message: str, at: int) -> bool:
    """Return whether this place of a message is within quotation marks."""
    return at > 0 and (message[at - 1] in _QUOTES or message.count('"', 0, at) % 2 == 1)


def _begins(entry: Known, message: str, at: int, head: re.Pattern[str] | None) -> bool:
    if head is None or head.fullmatch(message, 0, at):
        return True
    allowed = head.match(message)
    return message.startswith(entry.literal) or (
        allowed is not None and message.startswith(entry.literal, allowed.end())
    )


def _field(name: str, text: str) -> tuple[str, Any]:
    if name.endswith("_text"):
        return name, text
    if name.endswith("_list"):
        return name.removesuffix("_list"), [_convert(item.strip()) for item in text.split(",") if item.strip()]
    value = _convert(text)
    if name == "rank" or name.endswith("_rank"):
        no_rank = isinstance(value, int) and value >= _NO_RANK
        return (f"{name}_text", text) if no_rank else (name, value)
    return name, value


def _convert(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _MAX_DIGITS else text
    if _DECIMAL.fullmatch(text):
        return float(text)
    if _LIST.fullmatch(text):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _natural(value: Any) -> int | None:
    # The SDK writes -1 where it has no step yet.
    return value if isinstance(value, int) and value >= 0 else None
