"""Exit codes of every command."""

from __future__ import annotations

PASS = 0
FAIL = 1
UNKNOWN = 2
HARNESS = 3
USAGE = 64
INTERRUPTED = 130

OF_VERDICT = {"pass": PASS, "fail": FAIL, "unknown": UNKNOWN}


def of_verdict(verdict: str) -> int:
    """Return the exit code of a verdict. Raises ValueError for any other word."""
    try:
        return OF_VERDICT[verdict]
    except KeyError:
        raise ValueError(f"no verdict {verdict!r}; there are {', '.join(OF_VERDICT)}") from None
