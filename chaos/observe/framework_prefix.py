"""The prefixes of lines that MindSpore and MindFormers write."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.observe.wall_time import WallTime

# [ERROR] DISTRIBUTED(5918,7f34b5b9e6c0,python):2026-11-21-06:03:48.287.665 [mindspore/…/node.cc:548] Func] text
# [ERROR] ME(5903:139725708582976,MainProcess):2026-11-21-06:03:20.673.000 [mindspore/…/_api.py:365] text
_MINDSPORE = re.compile(
    r"\[(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|EXCEPTION|FATAL|TRACE)\] \w+\((?P<pid>\d{1,10})[^)]{0,200}\):"
    r"(?P<date>\d{4}-\d\d-\d\d)-(?P<time>\d\d:\d\d:\d\d)\.(?P<first>\d{0,3})\.(?P<second>\d{0,3}) ?"
    r"(?:\[[^]]{0,400}\] ?)?"
)
# 2026-11-21 01:28:53,952 - mindformers/…[mindformers/core/callback/callback.py:747] - INFO - text
_MINDFORMERS = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d),(?P<milli>\d{3}) - [^\[]{0,4096}\[[^]]{0,400}\] - [A-Z]+ - "
)


@dataclass(frozen=True)
class Prefixed:
    """A line apart: when and by which process, as far as it tells, and the message."""

    wall_ns: int | None
    pid: int | None
    message: str


def has_prefix(line: str) -> bool:
    """Whether MindSpore or MindFormers wrote this line."""
    return bool(_MINDSPORE.match(line) or _MINDFORMERS.match(line))


def split_prefix(line: str, wall: WallTime) -> Prefixed:
    """Take the prefix off. A line without one, such as the callbacks print, is all message."""
    if match := _MINDSPORE.match(line):
        # MindSpore's Python side drops leading zeros: 45.09 s is written 45.900.00. The digits are always microseconds.
        microseconds = int(match["first"] + match["second"] or "0")
        return Prefixed(wall.ns(match["date"], match["time"], microseconds), int(match["pid"]), line[match.end() :])
    if match := _MINDFORMERS.match(line):
        return Prefixed(wall.ns(match["date"], match["time"], int(match["milli"]) * 1000), None, line[match.end() :])
    return Prefixed(None, None, line)
