"""The stacks that a rank's ``faulthandler`` has written: bytes in, frames of its threads out."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

MOST_BYTES = 8 << 20
"""Bytes of such a file that are read; ``faulthandler`` writes at most 100 frames of each of 100 threads."""

_THREAD = re.compile(rb"(?:Current thread|Thread) (0x[0-9a-f]{1,32})\b[^\n]{0,200}\(most recent call first\):")
_FRAME = re.compile(rb'  File "(?P<file>[^\n]{0,4000})", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>[^\n]{1,1000})')
_LONGEST = 200
_FATAL = b"Fatal Python error: "


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


@dataclass(frozen=True)
class CrashStacks:
    """The dump that ``faulthandler`` writes when a fatal signal ends a process.

    ``error`` names the signal. ``crashed`` is the Python thread in which it came; None for a thread without Python.
    ``idle`` are the threads that were executing no Python code.
    """

    error: str
    crashed: int | None
    idle: frozenset[int]


def crash_of(content: bytes) -> CrashStacks | None:
    """Return the crash in a file; None where the file is anything but a single whole dump of one."""
    lines = content.split(b"\n")
    if not content.endswith(b"\n") or len(content) >= MOST_BYTES or content.count(_FATAL) != 1:
        return None
    if not lines[0].startswith(_FATAL):
        return None
    crashed: list[int] = []
    idle: set[int] = set()
    for line, after in itertools.pairwise(lines):
        if (thread := _THREAD.fullmatch(line)) is None:
            if line.startswith((b"Current thread", b"Thread ")) and b"C stack" not in line:
                return None  # a form that is not known
            continue
        if line.startswith(b"Current"):
            crashed.append(int(thread[1], 16))
        if after == b"  <no Python frame>":
            idle.add(int(thread[1], 16))
    if len(crashed) > 1:
        return None
    error = lines[0][len(_FATAL) :].decode("utf-8", "replace")[:_LONGEST]
    return CrashStacks(error, crashed[0] if crashed else None, frozenset(idle))
