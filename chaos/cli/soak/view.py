"""Shows a soak on a terminal: runs and verdicts so far, the time that is left, and the runs that go on."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from chaos.cli.guarded_view import never_failing
from chaos.cli.streams import OutputLost
from chaos.live.current import Current

if TYPE_CHECKING:
    from rich.console import Console, Group

    from chaos.live.current import CurrentRuns

_MARGIN = 3
"""Lines of a terminal that are left for the soak as a whole and for what was said last."""


class SoakView:
    """The state of a soak of ``total`` runs, of which ``jobs`` go on at the same time.

    ``outcomes`` counts the runs of this call by their verdict, or by another word for what became of them. ``noun`` is
    what is counted.
    """

    def __init__(
        self,
        total: int,
        jobs: int,
        say: Callable[[str], None],
        now: Callable[[], float] = time.time,
        noun: str = "runs",
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self.runs: CurrentRuns | None = None
        self.console: Console | None = None
        self.say = say
        self._total, self._jobs, self._noun = total, jobs, noun
        self._made = 0
        self._seconds = 0.0
        self._now = now
        self._began = now()

    def take(self, outcome: str, seconds: float, *, counts: bool = True) -> None:
        """Take in a run that has ended. One that does not count has to be made again."""
        self.outcomes[outcome] += 1
        self._made += counts
        self._seconds += seconds

    @property
    def left(self) -> float | None:
        """Seconds until all runs are made, by the mean of those so far; None before the first."""
        return None if not self._made else self._seconds / self._made * (self._total - self._made) / self._jobs

    def shown(self) -> Group:
        """Return the lines as they are now."""
        from rich.console import Group
        from rich.text import Text

        from chaos.live.terminal.several import lines_of_runs
        from chaos.live.words import clock

        parts = [f"soak  {clock(self._now() - self._began)}", f"{self._made} of {self._total} {self._noun}"]
        parts += [f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items())]
        parts += [] if self.left is None else [f"about {clock(self.left)} left"]
        room = (24 if self.console is None else self.console.height) - _MARGIN
        current = Current() if self.runs is None else self.runs.now
        lines = lines_of_runs(current.states, current.waits, self._now(), room)
        return Group(Text("  ".join(parts), style="bold"), *lines)


@contextmanager
def open_soak_view(
    places: Callable[[], Iterable[Path]], total: int, jobs: int, stream: TextIO | None = None, noun: str = "runs"
) -> Iterator[SoakView]:
    """Show a soak on standard error, in lines where that is no terminal.

    ``places`` returns the directories of reports that its runs are made in.
    """
    target = stream or sys.stderr
    if not target.isatty():
        yield SoakView(total, jobs, lambda text: click.echo(text, file=target), noun=noun)
        return
    from rich.console import Console
    from rich.live import Live

    from chaos.evidence.text import readable
    from chaos.live.current import CurrentRuns, is_started_here

    def say(text: str) -> None:
        with contextlib.suppress(OSError, OutputLost):  # the terminal has gone; the soak goes on
            console.print(readable(text), markup=False, highlight=False)

    console = Console(file=target)
    view = SoakView(total, jobs, say, noun=noun)
    view.console = console
    shown = never_failing(view.shown)
    with Live(console=console, refresh_per_second=4, transient=True, get_renderable=shown):
        view.runs = CurrentRuns(places, is_started_here)
        try:
            yield view
        finally:
            view.runs.close()
