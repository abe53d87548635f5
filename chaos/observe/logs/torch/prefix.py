"""Prefixes of PyTorch's own loggers, and the times in them.

Python, from torch 2.3 on: ``W1128 01:20:55.304000 974 torch/distributed/elastic/multiprocessing/api.py:1028] text``.
The number is the process; in torch 2.3 and 2.4 it is a thread, which is larger than any process. Torch 2.1 and 2.2
print ``[2024-03-12 14:41:30,298] torch.distributed.elastic.multiprocessing.api: [ERROR] text``, torch 1.9 to 2.0
``ERROR:torch.distributed.elastic.multiprocessing.api:text``. C++: ``[E1114 09:50:59.789610635 ProcessGroupNCCL.cpp:683]
text``, with a month of one digit before October, and ``[E ProcessGroupNCCL.cpp:916] text`` up to torch 2.3. Only the
form of torch 2.1 names a year. Facts: runs of torch 2.13, and public logs of torch 1.12 to 2.12.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.wall_time import WallTime

_MOST_PID = 1 << 22
"""Largest process number of Linux."""

_GLOG = r"(?P<month>\d\d)(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d)\.(?P<micro>\d{6}) (?P<number>\d{1,20})"
_LAUNCHER = r"(?:elastic/|launcher/|run\.py:|launch\.py:)"
_LAUNCHER_MODULE = r"(?:elastic|launcher|run|launch)\b"
_LAUNCHER_PREFIX = re.compile(
    rf"(?P<level>[VIWEC]){_GLOG} [^\]\s]{{0,400}}?torch/distributed/{_LAUNCHER}[^\]\s]{{0,200}}\] ?"
    r"|\[(?P<date>\d{4}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d),(?P<milli>\d{3})\] "
    rf"torch\.distributed\.{_LAUNCHER_MODULE}[\w.]{{0,200}}: \[(?P<word>[A-Z]{{1,10}})\] ?"
    rf"|(?P<name>[A-Z]{{4,10}}):torch\.distributed\.{_LAUNCHER_MODULE}[\w.]{{0,200}}:"
)
_PYTHON_PREFIX = re.compile(
    rf"(?P<level>[VIWEC]){_GLOG} (?:[^\]\s]{{0,400}}/)?torch(?:_npu)?/[^\]\s]{{1,400}}:\d{{1,7}}\] ?"
)
_NATIVE_PREFIX = re.compile(
    r"\[(?P<level>[IWEF])(?:(?P<date>\d{3,4}) (?P<time>\d\d:\d\d:\d\d)\.(?P<fraction>\d{6,9}))? "
    r"(?P<place>[\w./-]{1,400}\.(?:cpp|h|hpp|cc|cu|ts):\d{1,7})\] {0,2}"
)
_LEVELS = {"V": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "C": "CRITICAL", "F": "FATAL"}


@dataclass(frozen=True)
class TorchPrefix:
    """A split line: its level in full, the message, and the process, if the prefix names one.

    ``day_time`` is ``11-28 01:20:55.304000``, a local time without a year; None if the line has a full time
    (``wall_ns``) or none.
    """

    level: str
    message: str
    pid: int | None = None
    day_time: str | None = None
    wall_ns: int | None = None


def split_launcher(line: str, wall: WallTime) -> TorchPrefix | None:
    """Split the prefix of torchrun off; None for a line of another program."""
    match = _LAUNCHER_PREFIX.match(line)
    if match is None:
        return None
    message = line[match.end() :]
    if match["level"]:
        return _yearless(match, message)
    if match["date"]:
        wall_ns = wall.ns(match["date"], match["clock"], int(match["milli"]) * 1000)
        return TorchPrefix(match["word"], message, None, None, wall_ns)
    return TorchPrefix(match["name"], message)


def split_rank(line: str) -> TorchPrefix | None:
    """Split off the prefix of PyTorch in a rank, written in Python or in C++; None for a line of another program."""
    if match := _NATIVE_PREFIX.match(line):
        day_time = None
        if match["date"]:
            month, day = divmod(int(match["date"]), 100)
            day_time = f"{month:02d}-{day:02d} {match['time']}.{match['fraction'][:6]}"
        return TorchPrefix(_LEVELS[match["level"]], line[match.end() :], None, day_time)
    if match := _PYTHON_PREFIX.match(line):
        return _yearless(match, line[match.end() :])
    return None


def _yearless(match: re.Match[str], message: str) -> TorchPrefix:
    number = int(match["number"])
    day_time = f"{match['month']}-{match['day']} {match['time']}.{match['micro']}"
    return TorchPrefix(_LEVELS[match["level"]], message, number if number <= _MOST_PID else None, day_time)


def with_day_time(event: LogEvent, prefixed: TorchPrefix) -> LogEvent:
    """Return the event with the time of its line as the field ``time_text``, if that time has no year."""
    if prefixed.day_time is None:
        return event
    return replace(event, fields={**event.fields, "time_text": prefixed.day_time})


def nearest_moment(day_time: str, near_ns: int, tz: tzinfo | None = None) -> int | None:
    """Return the nanoseconds of a time without a year, in the year that brings it nearest to ``near_ns``.

    ``day_time`` is ``11-28 01:20:55.304000`` in the zone ``tz``, None the local one; ``near_ns`` is nanoseconds since
    the epoch. None if there is no such moment.
    """
    try:
        year = datetime.fromtimestamp(near_ns / 1e9, tz).year
        day, time = day_time.split(" ")
        clock, _, micro = time.partition(".")
        moments = [WallTime(tz).ns(f"{other}-{day}", clock, int(micro or 0)) for other in (year - 1, year, year + 1)]
    except (ValueError, OverflowError, OSError):
        return None
    return min(filter(None, moments), key=lambda moment: abs(moment - near_ns), default=None)
