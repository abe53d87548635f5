"""Shows a run while it goes on: its state in a few lines on a terminal, plain lines anywhere else."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from chaos.cli.guarded_view import never_failing
from chaos.cli.headlines import Headlines
from chaos.cli.streams import OutputLost
from chaos.evidence.text import readable
from chaos.run.progress import Progress

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from chaos.history.event import Event
    from chaos.live.terminal.looking import Looking


_WAITS = "; it waits "


def is_wait_for_cores(line: str) -> bool:
    """Return whether a plain line says that the run waits for processor cores, and who holds them."""
    return _WAITS in line and line.rstrip().endswith(" h at most")


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
    shown = never_failing(view.shown)
    with Live(console=console, refresh_per_second=4, transient=True, get_renderable=shown) as live:
        view.attach(live)
        try:
            yield view
        finally:
            view.flush()
            view.close()


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

    def follow(self, run_dir: Path) -> None:
        """Do nothing: each event has its own line."""

    def wait_for_cores(self, reason: str, seconds: float) -> None:
        """Print who holds the cores, and how long the run waits for them."""
        self.note(f"{reason}{_WAITS}{seconds / 3600:g} h at most")

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


_IDLE = ("wait.begin", "baseline.awaited")
"""Events after which the driver only waits."""


class LiveProgress:
    """The present run in a few lines, and the latest events above them.

    A run is looked at from the first wait of its driver on. What looks takes a while to import, in a thread of its own,
    and would keep a driver that still has imports of its own from the start of the job.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._live: Live | None = None
        self._looking: Looking | None = None
        self._run: tuple[Path, float] | None = None
        self._waits_for_cores: tuple[float, float] | None = None
        self._headlines = Headlines(self._print)

    def attach(self, live: Live) -> None:
        """Show headlines above the lines of this display."""
        self._live = live

    def note(self, text: str) -> None:
        """Print a line above the run."""
        self._headlines.flush()
        self._print(text)

    def flush(self) -> None:
        """Print the events that are held back for several ranks at a time."""
        self._headlines.flush()

    def close(self) -> None:
        """Look at no run any more."""
        if self._looking is not None:
            self._looking.close()
        self._looking = None

    def follow(self, run_dir: Path) -> None:
        """Show the run in this directory: its clock, and all of it as soon as its driver waits."""
        self.close()
        self._run, self._waits_for_cores = (run_dir, self._now()), None

    def wait_for_cores(self, reason: str, seconds: float) -> None:
        """Print the reason, and show who holds the cores as long as the run waits."""
        self.note(reason)
        self._waits_for_cores = (self._now(), seconds)

    def event(self, event: Event) -> None:
        """Print the events that matter above the run."""
        self._headlines.event(event)
        if event.event in _IDLE and self._looking is None and self._run is not None:
            with contextlib.suppress(Exception):  # a run that cannot be looked at goes on without its lines
                from chaos.live.terminal.looking import Looking

                self._looking = Looking(self._run[0])

    def _print(self, text: str) -> None:
        if self._live is None:
            return
        try:
            self._live.console.print(readable(text), markup=False, highlight=False)
        except (OSError, OutputLost):
            self._live = None  # the terminal has gone; the run goes on to its end and its clean-up

    def shown(self) -> Group:
        """Return the lines as they are now."""
        from rich.console import Group
        from rich.text import Text

        height = 24 if self._live is None else self._live.console.height
        state = None if self._looking is None else self._looking.state
        if state is not None:
            from chaos.live.terminal.panel import lines

            return Group(*lines(state, height))
        if self._run is not None:
            from chaos.live.words import STAGES, clock

            run_dir, since = self._run
            title = f"{clock(self._now() - since)}  {STAGES['preparing']}  {run_dir.name}"
            return Group(Text(readable(title), no_wrap=True, overflow="ellipsis"))
        if self._waits_for_cores is not None:
            return Group(*self._cores(*self._waits_for_cores)[: height - 1])
        return Group()

    def _cores(self, since: float, limit: float) -> list[Text]:
        """Return how long the run waits for cores, and who holds them. Nothing else goes on meanwhile."""
        from chaos.live.holders import waiting_for_cores
        from chaos.live.state import CoresWait
        from chaos.live.terminal.panel import cores_lines

        now = self._now()
        return cores_lines(CoresWait(os.getpid(), since, now - since, limit, waiting_for_cores()), now)
