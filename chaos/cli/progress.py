"""Shows a run while it goes on: a live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from chaos.cli.streams import OutputLost
from chaos.run.progress import Progress

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from chaos.history.event import Event

_SECOND = 1_000_000_000
_ROWS = 32
"""Ranks that the live table shows."""


@contextmanager
def open_progress(*, to_errors: bool = False, stream: TextIO | None = None) -> Iterator[Progress]:
    """Show progress on standard output, or on standard error where standard output is for the result."""
    target = stream or (sys.stderr if to_errors else sys.stdout)
    if not target.isatty():
        yield PlainProgress(target)
        return
    from rich.console import Console
    from rich.live import Live

    view = LiveProgress()
    console = Console(file=target)
    with Live(console=console, refresh_per_second=4, transient=True, get_renderable=view.table) as live:
        view.attach(live)
        yield view


def headline(event: Event) -> str | None:
    """One line about an event that matters to a watcher, None for the others (steps, digests, …)."""
    data = event.data
    match event.event:
        case "run.start":
            seed = f", seed {data['seed']}" if "seed" in data else ""
            return f"run {data.get('run')}{seed}"
        case "attempt.start":
            return f"{event.attempt}: started"
        case "attempt.end":
            return f"{event.attempt}: ended"
        case "train.begin":
            return f"{event.attempt}: rank {event.rank} begins to train after step {data.get('initial_step')}"
        case "fault.armed":
            return f"fault {data.get('fault')}: armed for ranks {_ranks(data.get('ranks'))}"
        case "fault.landed":
            place = f" at step {data['step']}, {data.get('phase')}" if data.get("step") is not None else ""
            return f"fault {data.get('fault')}: landed on ranks {_ranks(data.get('ranks'))}{place}"
        case "fault.missed":
            return f"fault {data.get('fault')}: missed, {data.get('reason')}"
        case "fault.healed":
            return f"fault {data.get('fault')}: undone, {data.get('how')}"
        case "checkpoint.end" if data.get("kind") == "end-of-life":
            return f"{event.attempt}: rank {event.rank} has saved its end-of-life checkpoint of step {data.get('step')}"
        case "rank.exit":
            how = f"signal {data['signal']}" if data.get("signal") is not None else f"code {data.get('code')}"
            return f"{event.attempt}: rank {event.rank} ended with {how}"
        case "deadline.expired":
            limit = data.get("limit", f"{data.get('seconds')} s")
            return f"deadline {data.get('name')} of {limit} has passed: {data.get('detail')}"
        case "run.end":
            return f"run ended{': ' + str(data['error']) if data.get('error') else ''}"
    return None


def _ranks(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


class PlainProgress:
    """Plain lines, with the seconds since the first of them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self._first: int | None = None

    def note(self, text: str) -> None:
        """Print a line."""
        self._print(text)

    def event(self, event: Event) -> None:
        """Print the events that matter."""
        self._first = event.mono if self._first is None else self._first
        if (text := headline(event)) is not None:
            self._print(f"{(event.mono - self._first) / _SECOND:6.1f} s  {text}")

    def _print(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            print(text, file=self._stream, flush=True)
        except (OSError, OutputLost):
            # Whoever was watching has gone (`chaos run … | head`). The run itself goes on to its end and its clean-up.
            self._stream = None


class LiveProgress:
    """A table with one row for each rank, and the last lines of what happened above it."""

    def __init__(self) -> None:
        self._ranks: dict[int, tuple[str, str, str]] = {}
        self._live: Live | None = None
        self._first: int | None = None

    def attach(self, live: Live) -> None:
        """Show headlines above the table of this display."""
        self._live = live

    def note(self, text: str) -> None:
        """Print a line above the table."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)

    def event(self, event: Event) -> None:
        """Update the rank's row, and print the events that matter above the table."""
        self._first = event.mono if self._first is None else self._first
        if (text := headline(event)) is not None:
            self.note(f"{(event.mono - self._first) / _SECOND:6.1f} s  {text}")
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
        """The table as it is now."""
        from rich.table import Table

        table = Table("rank", "attempt", "step", "state", box=None)
        rows = sorted(self._ranks.items())
        for rank, row in rows[:_ROWS]:
            table.add_row(str(rank), *row)
        if len(rows) > _ROWS:
            table.add_row("…", "", "", f"{len(rows) - _ROWS} more ranks")
        return table
