"""The reason why a process ended, by its last words: quoted in an error, so that nobody has to search for it."""

from __future__ import annotations

import re
from pathlib import Path

_TAIL_BYTES = 64 << 10
_MOST_CHARACTERS = 300

_ERROR = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Timeout|Aborted)\b|[\w.]+: error: )")
"""The last line of a Python traceback, or of an argument parser."""

_OWN_ERROR = re.compile(r"mindio_ttp: ")
"""The words with which the SDK ends the process."""


def last_error(log: Path) -> str | None:
    """Return the last line of a log that names an error, else its last line. None for an empty or unreadable log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line) or _OWN_ERROR.match(line)]
    last = (errors or lines or [""])[-1]
    return last[:_MOST_CHARACTERS] or None


def newest_log(logs: Path, rank: int) -> Path:
    """Return the log that a rank wrote last. A rank that is started again within a launch may have several."""
    paths = [logs / f"worker_{rank}.log", *logs.glob(f"worker_{rank}.before-*.log")]
    return max((path for path in paths if path.exists()), key=lambda path: path.stat().st_mtime_ns, default=paths[0])
