"""Shows a soak on a terminal: runs and verdicts so far, the time that is left, and the runs that go on."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from chaos.cli.guarded_view import never_failing

if TYPE_CHECKING:
    from rich.console import Group

    from chaos.live.current import CurrentRuns

_MOST_RUNS = 12


class SoakView:
    """The state of a soak of ``total`` runs, of which ``jobs`` go on at the same time.

    ``verdicts`` counts the results of this call; a run without a verdict counts as ``harness failed``.
    """

    def __init__(self, total: int, jobs: int, say: Callable[[str], None], now: Callable[[], float] = time.time) -> None:
        self.verdicts: Counter[str] = Counter()
        self.runs: CurrentRuns | None = None
        self.say = say
        self._total, self._jobs = total, jobs
        self._seconds = 0.0
        self._now = now
        self._began = now()

    def take(self, verdict: str | None, seconds: float) -> None:
        """Count a run that has ended."""
        self.verdicts[verdict or "harness failed"] += 1
        self._seconds += seconds

    @property
    def left(self) -> float | None:
        """Seconds until all runs are made, by the mean of those so far; None before the first."""
        done = self.verdicts.total()
        return None if not done else self._seconds / done * (self._total - done) / self._jobs

    def shown(self) -> Group:
        """Return the lines as they are now."""
        from rich.console import Group
        from rich.text import Text

        from chaos.live.terminal.panel import clock, status

        done = self.verdicts.total()
        parts = [f"soak  {clock(self._now() - self._began)}", f"{done} of {self._total} runs"]
        parts += [f"{count} {verdict}" for verdict, count in sorted(self.verdicts.items())]
        parts += [] if self.left is None else [f"about {clock(self.left)} left"]
        states = () if self.runs is None else self.runs.states
        return Group(Text("  ".join(parts), style="bold"), *map(status, states[:_MOST_RUNS]))


@contextmanager
def open_soak_view(reports: Path, total: int, jobs: int, stream: TextIO | None = None) -> Iterator[SoakView]:
    """Show a soak on standard error, in lines where that is no terminal."""
    target = stream or sys.stderr
    if not target.isatty():
        yield SoakView(total, jobs, lambda text: click.echo(text, file=target))
        return
    from rich.console import Console
    from rich.live import Live

    from chaos.evidence.text import readable
    from chaos.live.current import CurrentRuns, is_started_here

    def say(text: str) -> None:
        live.console.print(readable(text), markup=False, highlight=False)

    view = SoakView(total, jobs, say)
    shown = never_failing(view.shown)
    with Live(console=Console(file=target), refresh_per_second=4, transient=True, get_renderable=shown) as live:
        view.runs = CurrentRuns(reports, is_started_here)
        try:
            yield view
        finally:
            view.runs.close()
