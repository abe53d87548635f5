"""JSON lines on disk: what the history's and the ledger's readers and writers agree on."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_LINE = 1 << 20
"""Longest line in bytes, newline included. A longer one is refused by writers and is a problem for readers."""


class UnreadableFile(OSError):
    """The file is not a plain file that can be read."""


@dataclass(frozen=True)
class Line:
    """One line of a file. ``text`` is None if it was too long; ``torn`` if it does not end in a newline."""

    number: int
    text: bytes | None
    torn: bool


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a plain file, holding at most one of MAX_LINE bytes in memory. NUL bytes at the end are none.

    Raises UnreadableFile for anything but a plain file: a FIFO would block for ever and a link may lead out of the run.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableFile(f"{path}: cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadableFile(f"{path}: is not a plain file")
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            long = len(line) > MAX_LINE
            while long and not line.endswith(b"\n") and (rest := file.readline(MAX_LINE)):
                line = rest
            if not long and line.endswith(b"\0"):
                # The agent maps its file into memory: what it has not written yet is NUL bytes, at the end only.
                line = line.rstrip(b"\0")
                if not line:
                    return
            yield Line(number, None if long else line, torn=not line.endswith(b"\n"))


def decode(text: bytes) -> dict[str, Any]:
    """Parse one line. Raises ValueError unless it is one JSON object with finite numbers."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object was expected, not {type(value).__name__}")
    return value


def encode(record: dict[str, Any]) -> bytes:
    """Make one line. Raises ValueError or TypeError for what JSON cannot hold, and for a line over MAX_LINE."""
    line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > MAX_LINE:
        raise ValueError(f"a line of {len(line)} bytes: at most {MAX_LINE} are allowed")
    return line


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a float")
    return value
