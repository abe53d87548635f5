"""Shows a run that another process makes, until it is over: lines on a terminal, JSON, or a line for each change."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from chaos.base.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from rich.console import Group

    from chaos.live.state import LiveState

_LOOK_SECONDS = 1.0
_OVER = ("ended", "broken off")
"""Stages after which nothing more comes."""


def watch_run(
    run_dir: Path, stream: TextIO, *, as_json: bool = False, sleep: Callable[[float], None] = SYSTEM_CLOCK.sleep
) -> None:
    """Follow the run in a directory until it has been judged, or until its harness has gone."""
    if as_json or not stream.isatty():
        from chaos.live import as_json as data_of

        before: tuple[object, ...] | None = None
        for state in _states(run_dir, sleep, _LOOK_SECONDS):
            if as_json:
                print(json.dumps(data_of(state), allow_nan=False), file=stream, flush=True)
            elif (now := _essence(state)) != before:
                before = now
                print(_line(state), file=stream, flush=True)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream)
    with Live(console=console, refresh_per_second=4) as live:
        for state in _states(run_dir, sleep, _LOOK_SECONDS / 4):
            live.update(_group(state, console.height))


def _states(run_dir: Path, sleep: Callable[[float], None], seconds: float) -> Iterator[LiveState]:
    """Yield the state of a run after each look, the last of them when it is over.

    Looks are ``seconds`` apart, or more where a look takes long: the job needs the processors itself.
    """
    from chaos.live import REST, follow

    follower = follow(run_dir)
    while True:
        began = time.monotonic()
        state = follower.state()
        took = time.monotonic() - began
        yield state
        if state.stage in _OVER:
            return
        sleep(max(seconds, REST * took))


def _essence(state: LiveState) -> tuple[object, ...]:
    """Return what changes seldom: the stage, the faults, the phase, the states of the ranks."""
    phase = None if state.recovery is None or state.recovery.phase is None else state.recovery.phase.name
    return state.stage, [fault.state for fault in state.faults], phase, state.states, state.verdict


def _line(state: LiveState) -> str:
    from chaos.live.terminal.panel import status

    states = ", ".join(f"{count} {name}" for name, count in state.states.items())
    return f"{status(state).plain}: {states}" if states else status(state).plain


def _group(state: LiveState, height: int) -> Group:
    from rich.console import Group

    from chaos.live.terminal.panel import lines

    return Group(*lines(state, height))
