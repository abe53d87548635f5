"""The reason why a process ended, by its last words: quoted in an error, so that nobody has to search for it."""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile
from pathlib import Path

_TAIL_BYTES = 64 << 10
_MOST_CHARACTERS = 300

_ERROR = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Timeout|Aborted)\b|[\w.]+: error: )")
"""The last line of a Python traceback, or of an argument parser."""

_SUMMARY = re.compile(r"[\w.]*\bChildFailedError:")
"""The line by which torchrun says that a rank has failed: less than the rank's own error above it."""

_BORDER = re.compile(r"-{20,}|={20,}")
"""The line above and below a message of Open MPI, and of torchrun's summary."""

_OWN_ERROR = re.compile(r"mindio_ttp: ")
"""The words with which the SDK ends the process."""


def last_error(log: Path) -> str | None:
    """Return the last line of a log that names an error, else its last line. None for an empty or unreadable log.

    Where the last line is a border, the message inside it is quoted: its first paragraph.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.strip() for line in text.strip().splitlines()]
    errors = [line for line in lines if _ERROR.match(line) or _OWN_ERROR.match(line)]
    errors = [line for line in errors if not _SUMMARY.match(line)] or errors
    last = errors[-1] if errors else _framed(lines) or next(filter(None, reversed(lines)), "")
    return last[:_MOST_CHARACTERS] or None


def _framed(lines: list[str]) -> str:
    """Return the first paragraph of the message between the last two borders, if the last line is a border."""
    borders = [number for number, line in enumerate(lines) if _BORDER.fullmatch(line)]
    if len(borders) < 2 or borders[-1] != len(lines) - 1:
        return ""
    message = lines[borders[-2] + 1 : borders[-1]]
    return " ".join(takewhile(bool, dropwhile(lambda line: not line, message)))


def newest_log(logs: Path, rank: int) -> Path:
    """Return the log that a rank wrote last. A rank that is started again within a launch may have several."""
    paths = [logs / f"worker_{rank}.log", *logs.glob(f"worker_{rank}.before-*.log")]
    return max((path for path in paths if path.exists()), key=lambda path: path.stat().st_mtime_ns, default=paths[0])
