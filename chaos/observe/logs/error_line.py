"""Lines of level ERROR or above: each is an event of its program, even if no reader knows its message.

The level stands in the prefix of the program. A line of another program counts if one of the usual forms of loggers
puts the level before the message. The words of a message decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.observe.logs.device_log import DeviceLogReader
from chaos.observe.logs.framework_prefix import match_mindformers, split_prefix
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.taskd_log import TaskdLogReader
from chaos.observe.logs.torch.prefix import TorchPrefix, split_launcher, split_rank
from chaos.observe.logs.ttp.log import TtpLogReader

LONGEST = 400
"""Characters of a message that are kept."""

_LEVELS = ("ERROR", "CRITICAL", "FATAL", "EXCEPTION")
_OF_TORCH = ("E", "F", "[E", "[F")
_MARKS = (*_LEVELS, " error ", " critical ", " fatal ")
_OF_SDK = re.compile(r" (?P<level>error|critical|fatal) ")
_PLACE = re.compile(r"\[(?:TTP |PYH |ACC )?(?P<place>[^] ]{1,200}:\d{1,7})\]")
_RANK = re.compile(r"(?:\brank|^(?:processor|[Cc]ontroller)): ?(\d{1,9})\b")
_LOWER = r"(?:(?!\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING)\b).)"
_OTHER = (
    # ERROR:root:text, [ERROR] text, ERROR text
    re.compile(r"\[?(?P<level>ERROR|CRITICAL|FATAL)(?:\]:? |[:|] ?| {1,8}-? ?)(?P<text>\S.*)"),
    # 2026-11-21 01:28:53,952 - name - ERROR - text, [2026-11-21 01:28:53] [ERROR] [place] text, time | ERROR | text
    re.compile(
        r"\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d"
        + _LOWER
        + r"{1,200}?\b(?P<level>ERROR|CRITICAL|FATAL)\b[]\s|:-]{1,8}(?P<text>\S.*)"
    ),
    # E1125 21:12:06.123456  4711 file.cc:12] text
    re.compile(r"(?P<level>[EF])\d{4} \d\d:\d\d:\d\d\.\d{1,9} {1,8}\d{1,10} [^]]{1,200}\] ?(?P<text>.*)"),
)
_SHORT = {"E": "ERROR", "F": "FATAL"}


@dataclass(frozen=True)
class ErrorLine:
    """A split line of level ERROR or above. ``program`` is the beginning of its event's kind."""

    program: str
    level: str
    text: str
    place: str | None = None
    wall_ns: int | None = None
    pid: int | None = None
    rank: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)


class ErrorLineReader(LogReader):
    """Lines of level ERROR or above that no other reader knows: ``mindspore.error``, ``taskd.error``, ``other.error``.

    The fields are ``level``, the message ``text`` and, if the line has them, ``place_text`` in the source and the
    ``module`` of CANN. This reader comes after all others.
    """

    name = "errors"
    own_rank = True
    asked_last = True

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return False: such lines do not show which program wrote the log."""
        del first_lines
        return False

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line; None if its level is lower or unknown."""
        error = self.apart(line)
        if error is None:
            return None
        fields = {"level": error.level, "text": error.text[:LONGEST], **error.fields}
        if error.place is not None:
            fields["place_text"] = error.place
        return LogEvent(f"{error.program}.error", error.wall_ns, error.rank, None, error.pid, fields)

    def apart(self, line: str) -> ErrorLine | None:
        """Return the parts of a line of level ERROR or above, even if another reader knows it."""
        if not line.startswith(_OF_TORCH) and not any(mark in line for mark in _MARKS):
            return None
        if (prefixed := split_launcher(line, self._wall)) is not None:
            return _of_torch("torchrun", prefixed)
        if (prefixed := split_rank(line)) is not None:
            return _of_torch("torch", prefixed)
        if match := TtpLogReader.prefix.match(line):
            return self._of_sdk(match, line)
        if match := TaskdLogReader.prefix.match(line):
            return self._of_agent(match, line)
        if match := DeviceLogReader.prefix.match(line):
            return self._of_device(match, line)
        framework = split_prefix(line, self._wall)
        if framework.level:
            if framework.level not in _LEVELS:
                return None
            program = "mindformers" if match_mindformers(line) else "mindspore"
            place = _place(line[: len(line) - len(framework.message)])
            return ErrorLine(program, framework.level, framework.message, place, framework.wall_ns, framework.pid)
        return _of_another(line)

    def _of_sdk(self, match: re.Match[str], line: str) -> ErrorLine | None:
        level = _OF_SDK.search(match[0])
        if level is None:
            return None
        text = line[match.end() :]
        rank_match = _RANK.search(text)
        rank = int(rank_match[1]) if rank_match else None
        wall_ns = self._wall.ns(match["date"], match["time"], int(match["micro"]))
        program = "acc" if match["part"] == "ACC" else "ttp"
        return ErrorLine(program, level["level"].upper(), text, _place(match[0]), wall_ns, None, rank)

    def _of_agent(self, match: re.Match[str], line: str) -> ErrorLine | None:
        level = line[1 : line.index("]")]
        if level not in _LEVELS:
            return None
        python = match["language"] == "py"
        micro = int(match["fraction"]) * (1000 if python else 1)
        wall_ns = self._wall.ns(match["date"].replace("/", "-"), match["time"], micro)
        pid = int(match["number"]) if python else None
        return ErrorLine("taskd", level, line[match.end() :], match[0].split()[-1], wall_ns, pid)

    def _of_device(self, match: re.Match[str], line: str) -> ErrorLine | None:
        if match["level"] not in _LEVELS:
            return None
        wall_ns = self._wall.ns(match["date"], match["time"], int(match["milli"] + match["micro"]))
        pid = int(match["pid"]) if not match["pid"].startswith("-") else None
        text = line[match.end() :]
        return ErrorLine("device", match["level"], text, _place(text), wall_ns, pid, None, {"module": match["module"]})


def _of_torch(program: str, prefixed: TorchPrefix) -> ErrorLine | None:
    if prefixed.level not in _LEVELS:
        return None
    fields = {} if prefixed.day_time is None else {"time_text": prefixed.day_time}
    return ErrorLine(program, prefixed.level, prefixed.message, None, prefixed.wall_ns, prefixed.pid, None, fields)


def _of_another(line: str) -> ErrorLine | None:
    for pattern in _OTHER:
        if match := pattern.match(line):
            level = match["level"]
            return ErrorLine("other", _SHORT.get(level, level), match["text"])
    return None


def _place(prefix: str) -> str | None:
    match = _PLACE.search(prefix)
    return None if match is None else match["place"]
