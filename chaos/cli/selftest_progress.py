"""Shows a selftest while it goes on, on standard error: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.selftest.defect import Row


class LineWatcher:
    """Passes on a line for each event. ``advance`` is called for every finished defect."""

    def __init__(self, say: Callable[[str], None], advance: Callable[[], None] = lambda: None) -> None:
        self._say = say
        self._advance = advance
        self._lock = threading.Lock()

    def note(self, text: str) -> None:
        """Pass on a line."""
        with self._lock:
            self._say(text)

    def row(self, row: Row) -> None:
        """Pass on the result of a defect."""
        with self._lock:
            self._say(f"{row.outcome:<12}  {row.seconds:6.2f} s  {row.defect.name}")
            self._advance()


@contextmanager
def open_watcher(total: int, *, stream: TextIO | None = None) -> Iterator[LineWatcher]:
    """Show progress over ``total`` defects on standard error."""
    target = stream or sys.stderr
    if not target.isatty():
        yield LineWatcher(lambda text: print(text, file=target, flush=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=target), transient=True) as progress:
        task = progress.add_task("defects", total=total)

        def say(text: str) -> None:
            progress.console.print(text, markup=False, highlight=False)

        yield LineWatcher(say, lambda: progress.advance(task))
