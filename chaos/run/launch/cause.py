"""Why a process ended, by the last thing that it said: quoted in an error, so that nobody has to look for it."""

from __future__ import annotations

import re
from pathlib import Path

_TAIL_BYTES = 64 << 10
_MOST_CHARACTERS = 300

_ERROR = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Timeout|Aborted)\b|[\w.]+: error: )")
"""The last line of a Python traceback, or of an argument parser."""

_OWN_ERROR = re.compile(r"mindio_ttp: ")
"""What the SDK says when it ends the process."""


def last_error(log: Path) -> str | None:
    """The last line of a log that names an error, else its last line. None when it says nothing or cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line) or _OWN_ERROR.match(line)]
    told = (errors or lines or [""])[-1]
    return told[:_MOST_CHARACTERS] or None


def newest_log(logs: Path, rank: int) -> Path:
    """Return the log that a rank wrote last. One that is started again within a launch may have several."""
    paths = [logs / f"worker_{rank}.log", *logs.glob(f"worker_{rank}.before-*.log")]
    return max((path for path in paths if path.exists()), key=lambda path: path.stat().st_mtime_ns, default=paths[0])
