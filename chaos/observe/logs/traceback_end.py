"""The traceback of an uncaught Python exception at the end of a log.

Only the end is read, since the process has ended with it. The first exception of a chain is returned with the last, for
a second exception in a handler replaces the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.base.plain_files import open_plain
from chaos.observe.logs.launcher_prefix import strip_launcher

MOST_BYTES = 1 << 16
"""Bytes read at the end of a log."""

MOST_BEHIND = 50
"""Most lines behind a traceback that still ends the log: other threads, and libraries that are closed."""

BEGIN = "Traceback (most recent call last):"

RAISED = re.compile(r"(?P<name>[A-Za-z_][\w.]{0,200})(?:: (?P<text>.*))?")
"""The line of an exception behind the calls of its traceback."""

LINKS = {
    "During handling of the above exception, another exception occurred:": False,
    "The above exception was the direct cause of the following exception:": True,
}
"""Text between two tracebacks of a chain, and whether the second was raised ``from`` the first."""

_LONGEST = 300


@dataclass(frozen=True)
class LoggedError:
    """An exception at the end of a traceback: the name of its class without the module, and its text.

    ``first`` is the first exception of its chain, if another; ``wrapped``: each was raised ``from`` the one before.
    """

    name: str
    text: str
    first: LoggedError | None = None
    wrapped: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"[:_LONGEST]


def error_at_end(path: Path) -> LoggedError | None:
    """Return the exception at the end of a log; None if there is none. Raises OSError if the log cannot be read."""
    with open_plain(path) as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - MOST_BYTES))
        text = stream.read(MOST_BYTES).decode("utf-8", "replace")
    return last_error([strip_launcher(line).text for line in text.splitlines()])


def last_error(lines: list[str]) -> LoggedError | None:
    """Return the exception of the last chain of tracebacks in these lines, if it stands at their end."""
    error, end, link = None, 0, None
    for number, line, raised in _steps(lines):
        if raised is None:
            link = LINKS[line]
            continue
        if error is not None and link is not None:
            first = error.first or error
            raised = LoggedError(raised.name, raised.text, first, error.wrapped and link)
        error, end, link = raised, number, None
    return error if len(lines) - end <= MOST_BEHIND else None


def _steps(lines: Iterable[str]) -> Iterator[tuple[int, str, LoggedError | None]]:
    """Yield each exception that ends a traceback, and each link between two, with its number from 1."""
    inside = False
    for number, line in enumerate(lines, 1):
        if line == BEGIN:
            inside = True
        elif line in LINKS and not inside:
            yield number, line, None
        elif inside and line and not line[0].isspace():
            inside = False
            if (match := RAISED.fullmatch(line)) is not None:
                name = match["name"].rpartition(".")[2]
                yield number, line, LoggedError(name, (match["text"] or "")[:_LONGEST])
