"""Failures that MindIO TFT reports.

Its messages of failures have no common form, so the record decides: every record of level error is a failure, known
or not, and so is a warning that says that something failed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.patterns import known

FAILED = (
    known("ttp.again_registered", "repeated registration", r"^repeated registration\. rank:(?P<rank>-?\d+)"),
    known(
        "ttp.controller_moved",
        "backup controller to master",
        r"backup controller to master, controller rank: ?(?P<rank>-?\d+)",
    ),
    known(
        "ttp.failed",
        " fa",  # it also writes falied
        r"^(?:rank|processor|[Cc]ontroller): ?(?P<rank>-?\d+),? {0,2}(?P<what_text>.{0,200}? fa(?:il|li)ed\b.{0,200})",
    ),
    known(
        "ttp.failed",
        " failed",
        r"^(?P<what_text>(?:mindx notify to \w{1,40}, )?"
        r"(?:[Cc]ontroller (?:do|start)|do (?:save|repair)|rebuild HCCL|arf wait) .{0,200}? failed\b.{0,200})",
    ),
)
"""Failures known by their message alone, so that an excerpt without prefixes has them, too."""

_ERROR = frozenset({"error", "critical", "fatal"})
_FAILS = re.compile(r"\bfa(?:il|li)ed\b|\btime-?out\b", re.IGNORECASE)
_LONGEST = 400
_NUMBERS = {
    "ret": re.compile(r"\bret(?:urn|Code)?(?::| ?=|,)? ?(-?\d{1,18})\b"),
    "port": re.compile(r"\bport(?::| ?=)? ?(\d{1,5})\b"),
    "errno": re.compile(r"\berrno:? ?(-?\d{1,9})\b"),
}
_RANK = re.compile(r"(?<![\w-])(?:cur_|save_)?rank(?:_|Id)?: ?(-?\d{1,9})\b")


def read_failure(part: str, level: str, message: str, wall_ns: int | None) -> LogEvent | None:
    """Return the event of a message of unknown form, if the record itself says that something has failed.

    ``part`` is the part of the program that wrote it: ``acc`` for the link layer, else ``ttp``.
    """
    fails = bool(_FAILS.search(message))
    if level not in _ERROR and not (level == "warning" and fails):
        return None
    rank = _RANK.search(message)
    named = int(rank[1]) if rank and int(rank[1]) >= 0 else None
    return LogEvent(
        f"{part}.{'failed' if fails else 'error'}", wall_ns, named, None, None, {"what_text": message[:_LONGEST]}
    )


def with_numbers(event: LogEvent, message: str) -> LogEvent:
    """Return a failure with the return code, port and error number that its message names."""
    if not event.kind.endswith(("failed", ".error")):
        return event
    numbers: dict[str, Any] = {
        name: int(match[1])
        for name, pattern in _NUMBERS.items()
        if name not in event.fields and (match := pattern.search(message))
    }
    return replace(event, fields={**event.fields, **numbers}) if numbers else event
