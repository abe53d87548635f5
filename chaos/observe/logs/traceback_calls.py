"""The calls of the last traceback in a log, and the line of its exception: the program's own words about an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.base.plain_files import open_plain
from chaos.observe.logs.launcher_prefix import strip_launcher
from chaos.observe.logs.traceback_end import BEGIN, LINKS, RAISED
from chaos.observe.stacks import Frame

_MOST_BYTES = 1 << 18
"""Bytes read at the end of a log."""

_MOST_COUNTED = 16 << 20
"""Size of a log up to which its lines are counted."""

_BLOCK = 1 << 20
_FRAME = re.compile(r'  File "(?P<file>[^"]{1,4000})", line (?P<line>\d{1,9}), in (?P<function>.{1,1000})')
_LONGEST = 200


@dataclass(frozen=True)
class LoggedTraceback:
    """A traceback, the latest call first. ``line`` is that of the exception in its log, 0 where it was not counted.

    In a chain these are the calls of the first exception, and its line: the others follow from it. ``error`` is the
    exception that ended the chain, as a line.
    """

    frames: tuple[Frame, ...]
    line: int
    error: str


def traceback_at_end(path: Path) -> LoggedTraceback | None:
    """Return the last chain of tracebacks in a log; None if there is none. Raises OSError."""
    with open_plain(path) as stream:
        size = stream.seek(0, 2)
        begin = max(0, size - _MOST_BYTES)
        before = 0
        stream.seek(0)
        if size <= _MOST_COUNTED:
            while (left := begin - stream.tell()) > 0:
                before += stream.read(min(_BLOCK, left)).count(b"\n")
        stream.seek(begin)
        lines = stream.read(_MOST_BYTES).decode("utf-8", "replace").split("\n")
    traceback = last_traceback([strip_launcher(line.rstrip("\r")).text for line in lines])
    if traceback is None:
        return None
    counted = size <= _MOST_COUNTED
    return LoggedTraceback(traceback.frames, traceback.line + before if counted else 0, traceback.error)


def last_traceback(lines: Sequence[str]) -> LoggedTraceback | None:
    """Return the last chain of tracebacks in these lines, numbered from 1."""
    traceback: LoggedTraceback | None = None
    frames: list[Frame] | None = None
    is_linked = False
    for number, line in enumerate(lines, 1):
        if line == BEGIN:
            frames = []
        elif line in LINKS and frames is None:
            is_linked = True
        elif frames is None:
            continue
        elif (call := _FRAME.fullmatch(line)) is not None:
            file, function = call["file"][-_LONGEST:], call["function"][-_LONGEST:]
            frames.append(Frame(file, int(call["line"]), function))
        elif line and not line[0].isspace():
            if RAISED.fullmatch(line) is not None:
                if is_linked and traceback is not None:
                    traceback = replace(traceback, error=line)
                else:
                    traceback = LoggedTraceback(tuple(reversed(frames)), number, line)
            frames, is_linked = None, False
    return traceback
