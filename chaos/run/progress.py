"""The messages of a run to its watcher."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from chaos.history.event import Event
from chaos.history.writer import HistoryWriter


class Progress(Protocol):
    """Watches a run. Nothing that it does may change the run: a broken view goes quiet."""

    def note(self, text: str) -> None:
        """Show a line that is no event of the history: a seed, a baseline taken from the cache."""

    def event(self, event: Event) -> None:
        """Show an event of the history, from harness or ranks, in the order in which the driver learns of it."""

    def follow(self, run_dir: Path) -> None:
        """Show the run in this directory from now on."""

    def wait_for_cores(self, reason: str, seconds: float) -> None:
        """Show that the run waits for processor cores, for so many seconds at most, and who holds them."""


class Recorder(Protocol):
    """The destination of events: the history, or the history and its watcher."""

    def record(
        self,
        event: str,
        /,
        *,
        attempt: str | None = None,
        rank: int | None = None,
        pid: int | None = None,
        **data: Any,
    ) -> Event:
        """Append an event and return it."""


class Watched:
    """A history whose events are shown as soon as they are recorded."""

    def __init__(self, history: HistoryWriter, progress: Progress) -> None:
        self._history = history
        self._progress = progress

    def record(
        self,
        event: str,
        /,
        *,
        attempt: str | None = None,
        rank: int | None = None,
        pid: int | None = None,
        **data: Any,
    ) -> Event:
        """Record the event, then show it."""
        recorded = self._history.record(event, attempt=attempt, rank=rank, pid=pid, **data)
        self._progress.event(recorded)
        return recorded
