"""Shows a run while it goes on: a live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from chaos.base.rank_sets import by_word, spans
from chaos.cli.headlines import Headlines
from chaos.cli.streams import OutputLost
from chaos.run.progress import Progress

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from chaos.history.event import Event

_ROWS = 32
"""Rows that the live table has at most; of more ranks those in the same state share one."""


@contextmanager
def open_progress(*, to_errors: bool = False, stream: TextIO | None = None) -> Iterator[Progress]:
    """Show progress on standard output, or on standard error where standard output is for the result."""
    target = stream or (sys.stderr if to_errors else sys.stdout)
    if not target.isatty():
        plain = PlainProgress(target)
        try:
            yield plain
        finally:
            plain.flush()
        return
    from rich.console import Console
    from rich.live import Live

    view = LiveProgress()
    console = Console(file=target)
    with Live(console=console, refresh_per_second=4, transient=True, get_renderable=view.table) as live:
        view.attach(live)
        try:
            yield view
        finally:
            view.flush()


class PlainProgress:
    """Plain lines, with the seconds since the first of them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self._headlines = Headlines(self._print)

    def note(self, text: str) -> None:
        """Print a line."""
        self._headlines.flush()
        self._print(text)

    def event(self, event: Event) -> None:
        """Print the events that matter."""
        self._headlines.event(event)

    def flush(self) -> None:
        """Print the events that are held back for several ranks at a time."""
        self._headlines.flush()

    def _print(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            print(text, file=self._stream, flush=True)
        except (OSError, OutputLost):
            # The reader has gone (`chaos run … | head`). The run itself goes on to its end and its clean-up.
            self._stream = None


class LiveProgress:
    """A table with one row for each rank, and the latest events above it."""

    def __init__(self) -> None:
        self._ranks: dict[int, tuple[str, str, str]] = {}
        self._live: Live | None = None
        self._headlines = Headlines(self._print)

    def attach(self, live: Live) -> None:
        """Show headlines above the table of this display."""
        self._live = live

    def note(self, text: str) -> None:
        """Print a line above the table."""
        self._headlines.flush()
        self._print(text)

    def flush(self) -> None:
        """Print the events that are held back for several ranks at a time."""
        self._headlines.flush()

    def _print(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)

    def event(self, event: Event) -> None:
        """Update the rank's row, and print the events that matter above the table."""
        self._headlines.event(event)
        if event.event == "attempt.start":
            self._ranks.clear()
        if event.rank is None:
            return
        attempt, step, state = self._ranks.get(event.rank, ("", "", ""))
        match event.event:
            case "rank.found":
                state = "starting"
            case "step.begin":
                step, state = str(event.data.get("step")), "training"
            case "barrier.reached":
                state = f"held at {event.data.get('phase')}"
            case "handler.enter":
                state = f"handler {event.data.get('name')}"
            case "checkpoint.begin":
                state = f"saving ({event.data.get('kind')})"
            case "rank.exit":
                state = "ended" if event.data.get("code") == 0 else "dead"
        self._ranks[event.rank] = (event.attempt or attempt, step, state)

    def table(self) -> Table:
        """Return the table as it is now: a row for each rank, or for each state of very many ranks."""
        from rich.table import Table

        many = len(self._ranks) > _ROWS
        table = Table("ranks" if many else "rank", "attempt", "step", "state", box=None)
        if many:
            rows = [(spans(ranks), row) for row, ranks in by_word(self._ranks).items()]
        else:
            rows = [(str(rank), row) for rank, row in sorted(self._ranks.items())]
        for name, row in rows[:_ROWS]:
            table.add_row(name, *row)
        if len(rows) > _ROWS:
            table.add_row("…", "", "", f"{len(rows) - _ROWS} more rows")
        return table
