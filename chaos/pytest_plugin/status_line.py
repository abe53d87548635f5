"""The state of the present run on the terminal, in a few lines below pytest's own."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pytest

if TYPE_CHECKING:
    from chaos.live.current import Current

_MOST_LINES = 8
_SHARE = 3
"""A terminal has this many times as many lines as the run, at least."""

_KEEP, _BACK = "\x1b7", "\x1b8"
"""Keep the place of the cursor, and go back to it."""
_BELOW = "\x1b[1B\r\x1b[J"
"""Go to the beginning of the line below, and erase everything from there on."""


@contextmanager
def status_line(config: pytest.Config, reports: Path) -> Iterator[None]:
    """Show the run that this process has started, where pytest writes to a terminal and makes the tests itself."""
    terminal = _terminal(config)
    if terminal is None:
        yield
        return
    from chaos.live.current import CurrentRuns, is_started_here

    below, colours = _Below(terminal), config.get_terminal_writer().hasmarkup
    # Lines are made before the lock is taken that the end of the test waits for.
    runs = CurrentRuns(
        lambda: (reports,), is_started_here, lambda current: below.show(lines(current, _size(terminal), colours))
    )
    try:
        yield
    finally:
        runs.close()
        below.close()


class _Below:
    """The lines below the cursor. After ``close`` nothing is written, also by a look that still goes on."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal: TextIO | None = terminal
        self._lock = threading.Lock()

    def show(self, shown: Sequence[str]) -> None:
        """Show these lines in place of those before."""
        with self._lock:
            self._write(shown)

    def close(self) -> None:
        """Erase the lines."""
        with self._lock:
            self._write(())
            if self._terminal is not None:
                with contextlib.suppress(OSError):
                    self._terminal.close()
            self._terminal = None

    def _write(self, shown: Sequence[str]) -> None:
        if self._terminal is None:
            return
        count = max(1, len(shown))
        room = "\x1bD" * count + f"\x1b[{count}A"  # the cursor keeps its column
        with contextlib.suppress(OSError, ValueError):  # a terminal that has gone fails no test
            self._terminal.write(f"{room}{_KEEP}{_BELOW}{chr(10).join(_at_left(shown))}{_BACK}")
            self._terminal.flush()


def _at_left(shown: Sequence[str]) -> Iterator[str]:
    """Yield the lines; each but the first begins at the left edge, whatever the terminal makes of a line feed."""
    for number, text in enumerate(shown):
        yield f"\r{text}" if number else text


def lines(current: Current, size: os.terminal_size, colours: bool) -> list[str]:
    """Return what goes on as lines that fit a terminal of this size."""
    from rich.console import Console

    from chaos.live.terminal.several import lines_of_runs

    console = Console(width=max(20, size.columns - 1), force_terminal=True, no_color=not colours)
    room = max(1, min(_MOST_LINES, size.lines // _SHARE))
    with console.capture() as capture:
        for line in lines_of_runs(current.states[-1:], current.waits, time.time(), room):
            console.print(line, no_wrap=True, overflow="ellipsis")
    return capture.get().splitlines()


def _size(terminal: TextIO) -> os.terminal_size:
    try:
        return os.get_terminal_size(terminal.fileno())
    except (OSError, ValueError):  # it has gone, or is closed
        return os.terminal_size((80, 24))


def _terminal(config: pytest.Config) -> TextIO | None:
    """Return the terminal that pytest writes to; None in a worker of xdist, beside workers, and without a terminal.

    A terminal that cannot move its cursor counts for none. While a test is made its output is captured, that to the
    terminal included. So this is another descriptor.
    """
    plugins = config.pluginmanager
    capture = plugins.get_plugin("capturemanager")
    if plugins.get_plugin("terminalreporter") is None or capture is None or _has_workers(config):
        return None
    if config.getoption("capture") == "no":  # then a run prints its lines (live_lines.py)
        return None
    with capture.global_and_fixture_disabled():
        stream: TextIO | None = getattr(config.get_terminal_writer(), "_file", None)
        if stream is None or not stream.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
            return None
        return os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8", errors="replace")


def has_status_line(config: pytest.Config) -> bool:
    """Return whether the present run is shown in lines below pytest's own."""
    if (terminal := _terminal(config)) is None:
        return False
    terminal.close()
    return True


def _has_workers(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None)) or "PYTEST_XDIST_WORKER" in os.environ
