"""The stacks that a rank's ``faulthandler`` has written: bytes in, frames of its threads out."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_BYTES = 8 << 20
"""Bytes of such a file that are read; ``faulthandler`` writes at most 100 frames of each of 100 threads."""

_THREAD = re.compile(rb"(?:Current thread|Thread) (0x[0-9a-f]{1,32})\b[^\n]{0,200}\(most recent call first\):")
_FRAME = re.compile(rb'  File "(?P<file>[^\n]{0,4000})", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>[^\n]{1,1000})')
_LONGEST = 200


@dataclass(frozen=True)
class Frame:
    """A call: the file, its line (0 where it is unknown) and the function."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class ThreadStack:
    """The calls of a thread, the latest first. ``at`` is the line of the file at which they begin, from 1."""

    ident: int
    frames: tuple[Frame, ...]
    at: int


def threads_of(content: bytes) -> list[ThreadStack]:
    """Return the threads in the last dump of a file, in the written order.

    A thread that is written again begins another dump, as where the signal has come twice.
    """
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    ident, at = None, 0
    for number, line in enumerate([*content[:MOST_BYTES].split(b"\n"), b"Thread 0x0 (most recent call first):"], 1):
        if (frame := _FRAME.fullmatch(line)) is not None:
            frames.append(_frame(frame))
        elif (thread := _THREAD.fullmatch(line)) is not None:
            if ident is not None:
                threads.append(ThreadStack(ident, tuple(frames), at))
            ident, at, frames = int(thread[1], 16), number, []
            if any(known.ident == ident for known in threads):
                threads = []
    return threads


def _frame(match: re.Match[bytes]) -> Frame:
    file, function = (match[name].decode("utf-8", "replace")[-_LONGEST:] for name in ("file", "function"))
    return Frame(file, int(match["line"]) if match["line"].isdigit() else 0, function)


def main_stack(content: bytes, main: int | None) -> ThreadStack | None:
    """Return the stack of the main thread, where the dump is whole; None else.

    Without the number of the main thread it is the last one: ``faulthandler`` writes the newest thread first.
    """
    if not content.endswith(b"\n"):
        return None
    threads = threads_of(content)
    if main is None:
        return threads[-1] if threads else None
    return next((thread for thread in threads if thread.ident == main and thread.frames), None)
