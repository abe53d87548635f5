"""JSON lines on disk: the format that the readers and writers of the history and the ledger share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.base.plain_files import UnreadableFile, open_plain
from chaos.base.strict_json import parse

__all__ = ["MAX_LINE", "Line", "UnreadableFile", "decode", "encode", "read_lines"]

MAX_LINE = 1 << 20
"""Longest line in bytes, newline included. A longer one is refused by writers and is a problem for readers."""

MAX_SKIPPED = 64 << 20
"""Bytes of a line that are passed over. A file with a longer line, such as a hole in the file, is read no further."""

MAX_DEPTH = 64
"""Levels of objects and lists in a line; more than any record has."""

MAX_PARTS = 20_000
"""Objects and lists in a line, the outermost level included."""


@dataclass(frozen=True)
class Line:
    """One line of a file. ``text`` is None if it was too long; ``torn`` if it does not end in a newline."""

    number: int
    text: bytes | None
    torn: bool


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a plain file, at most MAX_LINE bytes of one in memory; NUL bytes at the end are not a line.

    Raises UnreadableFile for anything but a plain file: a FIFO would block for ever and a link may lead out of the run.
    Raises it for a line without an end too.
    """
    with open_plain(path) as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            long = len(line) > MAX_LINE
            skipped = len(line)
            while long and not line.endswith(b"\n") and (rest := file.readline(MAX_LINE)):
                line = rest
                skipped += len(line)
                if skipped > MAX_SKIPPED:
                    raise UnreadableFile(path, f"has a line of more than {MAX_SKIPPED:,} bytes")
            if not long and line.endswith(b"\0"):
                # The agent maps its file into memory: the part not written yet is NUL bytes, at the end only.
                line = line.rstrip(b"\0")
                if not line:
                    return
            yield Line(number, None if long else line, torn=not line.endswith(b"\n"))


def decode(text: bytes) -> dict[str, Any]:
    """Parse one line. Raises ValueError unless it is one JSON object that a writer can have made.

    It is strict JSON (chaos.base.strict_json). It is nested at most MAX_DEPTH levels deep, and holds at most MAX_PARTS
    objects and lists, so that what it takes in memory is a small multiple of its length.
    """
    parts = text.count(b"[") + text.count(b"{")
    if parts > MAX_PARTS:
        raise ValueError(f"more than {MAX_PARTS} objects and lists")
    value = parse(text)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object was expected, not {type(value).__name__}")
    if parts > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    return value


def decode_shown(text: bytes) -> dict[str, Any] | None:
    """Parse one line of a file whose writer lives; None while the line is not whole.

    An agent copies its lines into a file that is mapped into memory, and the end of a line may show before its
    beginning. The next reading of the file finds the line.
    """
    try:
        return decode(text)
    except ValueError:
        return None


def encode(record: dict[str, Any]) -> bytes:
    """Make one line. Raises ValueError or TypeError for what JSON cannot hold, and for a line over MAX_LINE."""
    line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > MAX_LINE:
        raise ValueError(f"a line of {len(line)} bytes: at most {MAX_LINE} are allowed")
    return line


def _depth(value: Any) -> int:
    """Return the levels of objects and lists, without recursion."""
    depth, level = 0, [value]
    while level := [container for container in level if isinstance(container, (dict, list))]:
        depth += 1
        level = [
            inner for container in level for inner in (container.values() if isinstance(container, dict) else container)
        ]
    return depth
