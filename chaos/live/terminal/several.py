"""Runs that go on at the same time, each in as many lines as there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from chaos.live.state import CoresWait, LiveState
from chaos.live.terminal.panel import FEWEST, cores_lines, shortened, status


def lines_of_runs(states: Sequence[LiveState], waits: Sequence[CoresWait], now: float, room: int) -> list[Text]:
    """Return the lines of all runs, and of the harnesses that wait for cores. ``room`` is the number of lines.

    Where each run has room for it, it is shown as ``chaos run`` shows it; else on one line.
    """
    waiting = [line for wait in waits for line in cores_lines(wait, now)]
    waiting = waiting[: max(1, room // 2)] if states else waiting[:room]
    room -= len(waiting)
    each = room // max(1, len(states))
    if each >= FEWEST:
        return [line for state in states for line in shortened(state, each)] + waiting
    shown = [status(state) for state in states]
    if len(shown) > room:
        shown = [*shown[: room - 1], Text(f"and {len(shown) - room + 1} more runs")]
    return shown + waiting
