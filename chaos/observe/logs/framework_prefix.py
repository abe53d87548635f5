"""The prefixes of lines that MindSpore and MindFormers write."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.observe.logs.wall_time import WallTime

# [ERROR] DISTRIBUTED(5918,7f34b5b9e6c0,python):2026-11-21-06:03:48.287.665 [mindspore/…/node.cc:548] Func] text
# [ERROR] ME(5903:139725708582976,MainProcess):2026-11-21-06:03:20.673.000 [mindspore/…/_api.py:365] text
_MINDSPORE = re.compile(
    r"\[(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|EXCEPTION|FATAL|TRACE)\] \w+\((?P<pid>\d{1,10})[^)]{0,200}\):"
    r"(?P<date>\d{4}-\d\d-\d\d)-(?P<time>\d\d:\d\d:\d\d)\.(?P<first>\d{0,3})\.(?P<second>\d{0,3}) ?"
    r"(?:\[[^]]{0,400}\] ?)?"
)
# 2026-11-21 01:28:53,952 - mindformers/…[mindformers/core/callback/callback.py:747] - INFO - text
_MINDFORMERS = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d),(?P<milli>\d{3}) - "
    r"(?:[^\[]|\[(?![^]]{0,400}\] - [A-Z])){0,4096}\[[^]]{0,400}\] - (?P<level>[A-Z]+) - "
)
# [INFO] 2026-11-21 01:28:53,952 [mindformers/core/callback/callback.py:747] print_output_info: text
_MINDFORMERS_FILE = re.compile(
    r"\[(?P<level>[A-Z]{1,10})\] (?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d),(?P<milli>\d{3}) "
    r"\[[^]]{0,400}\] [\w<>]{1,100}: "
)
# - INFO - text, and [mindformers/core/callback/callback.py:529] - INFO - text: documents leave out the time, often the
# place too.
_MINDFORMERS_QUOTED = re.compile(
    r"(?:- )?(?:\[[^]]{0,400}\] )?- (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) - "
    r"(?P<date>)(?P<time>)(?P<milli>)"
)


@dataclass(frozen=True)
class Prefixed:
    """A split line: the time, the process and the level, as far as the line has them, and the message."""

    wall_ns: int | None
    pid: int | None
    message: str
    level: str = ""


def has_prefix(line: str) -> bool:
    """Return whether MindSpore or MindFormers wrote this line."""
    return bool(_MINDSPORE.match(line) or match_mindformers(line))


def match_mindformers(line: str) -> re.Match[str] | None:
    """Return the match of MindFormers' prefix: as printed, as in its own files, or as in documents, without the time.

    The groups ``date``, ``time`` and ``milli`` are empty in the last form.
    """
    return _MINDFORMERS.match(line) or _MINDFORMERS_FILE.match(line) or _MINDFORMERS_QUOTED.match(line)


def time_of(prefix: re.Match[str]) -> int | None:
    """Return the offset of date and time in a line with this prefix of MindFormers, None if it has none."""
    return prefix.start("date") if prefix["date"] else None


def split_prefix(line: str, wall: WallTime) -> Prefixed:
    """Split the prefix off. A line without one, such as the callbacks print, is all message."""
    if match := _MINDSPORE.match(line):
        # MindSpore's Python side drops leading zeros: 45.09 s is written 45.900.00. The digits are always microseconds.
        microseconds = int(match["first"] + match["second"] or "0")
        wall_ns = wall.ns(match["date"], match["time"], microseconds)
        return Prefixed(wall_ns, int(match["pid"]), line[match.end() :], match["level"])
    if match := match_mindformers(line):
        timed = match["date"]
        wall_ns = wall.ns(timed, match["time"], int(match["milli"]) * 1000) if timed else None
        return Prefixed(wall_ns, None, line[match.end() :], match["level"])
    return Prefixed(None, None, line)
