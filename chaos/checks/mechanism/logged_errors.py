"""The error that ended a rank by the traceback in its log, where no agent has recorded it. Facts only."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.facts import TRAIN
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.logs.traceback_end import LoggedError, error_at_end
from chaos.plan.model import Plan

LOGGED = "error.logged"
"""The event name for such a traceback: an agent would have recorded ``error.uncaught``."""

_UNCAUGHT = 1
"""The exit code of Python for an uncaught exception."""


def logged_errors(
    plan: Plan, history: History, artifacts: Artifacts, known: Collection[tuple[int | None, int | None]]
) -> Iterator[Event]:
    """Yield the error of each process of the faulted launch that ended with exit code 1 and is not ``known``.

    A process whose handler ``exit`` was called ended by the handler. An exception of a class that is not Python's own
    shows nothing by its name alone, and is passed over.
    """
    exit_calls = {(event.rank, event.pid) for event in history.select("handler.enter", attempt=TRAIN, name="exit")}
    for rank in range(plan.layout.ranks):
        exits = history.select("rank.exit", attempt=TRAIN, rank=rank)
        logs = artifacts.worker_logs(TRAIN, rank)
        if len(exits) != len(logs):
            continue  # the process of each log cannot be determined
        for end, path in zip(exits, logs, strict=True):
            if end.data.get("code") != _UNCAUGHT or (rank, end.pid) in exit_calls or (rank, end.pid) in known:
                continue
            error = error_at_end(path)
            if error is not None and _is_builtin(error):
                yield _event(error, end, artifacts.relative(path))


def _is_builtin(error: LoggedError) -> bool:
    return all(
        isinstance(getattr(builtins, logged_error.name, None), type) for logged_error in (error, error.first or error)
    )


def _event(error: LoggedError, end: Event, where: str) -> Event:
    data: dict[str, Any] = {"error": str(error), "base": error.name}
    if error.first is not None:
        data |= {"first": str(error.first), "first_base": error.first.name, "wrapped": error.wrapped}
    return Event(
        LOGGED, end.mono, end.wall, "log", 0, TRAIN, end.rank, end.pid, data, where, clock=end.clock, error=end.error
    )
