"""The state of the present run on the terminal, in a line below pytest's own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import pytest

if TYPE_CHECKING:
    from chaos.live.state import LiveState

_ROOM = "\x1bD\x1b[1A"
"""Makes room for a line below the cursor, which keeps its column: index, and up again."""
_BELOW = "\x1b7\x1b[1B\r\x1b[2K"
"""Keeps the place of the cursor, and goes to the beginning of the line below, which is erased."""
_BACK = "\x1b8"


@contextmanager
def status_line(config: pytest.Config, reports: Path) -> Iterator[None]:
    """Show the run that this process has started, where pytest writes to a terminal and makes the tests itself."""
    terminal = _terminal(config)
    if terminal is None:
        yield
        return
    from chaos.live.current import CurrentRuns, is_started_here

    def below(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a terminal that has gone fails no test
            terminal.write(f"{_ROOM}{_BELOW}{text}{_BACK}")
            terminal.flush()

    runs = CurrentRuns(reports, is_started_here, lambda states: below(line(states[-1], config) if states else ""))
    try:
        yield
    finally:
        runs.close()
        below("")
        with contextlib.suppress(OSError):
            terminal.close()


def line(state: LiveState, config: pytest.Config) -> str:
    """Return the state as text with colours, as wide as the terminal."""
    from rich.console import Console

    from chaos.live.terminal.panel import status

    width = max(20, config.get_terminal_writer().fullwidth - 1)
    console = Console(width=width, force_terminal=True, no_color=not config.get_terminal_writer().hasmarkup)
    with console.capture() as capture:
        console.print(status(state), end="", no_wrap=True, overflow="ellipsis")
    return capture.get()


def _terminal(config: pytest.Config) -> TextIO | None:
    """Return the terminal that pytest writes to; None in a worker of xdist, beside workers, and without a terminal.

    A terminal that cannot move its cursor counts for none. While a test is made its output is captured, that to the
    terminal included. So this is another descriptor.
    """
    plugins = config.pluginmanager
    capture = plugins.get_plugin("capturemanager")
    if plugins.get_plugin("terminalreporter") is None or capture is None or _has_workers(config):
        return None
    with capture.global_and_fixture_disabled():
        stream: TextIO | None = getattr(config.get_terminal_writer(), "_file", None)
        if stream is None or not stream.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
            return None
        return os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8", errors="replace")


def _has_workers(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None)) or "PYTEST_XDIST_WORKER" in os.environ
