"""Where an exception was raised that ended a rank: the calls of its traceback, and its line in the rank's own log.

A reader looks there first. The harness's record says only that the process has ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.evidence.artifacts import Artifacts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.logs.traceback_calls import LoggedTraceback, traceback_at_end
from chaos.observe.stack_words import raised_in

_MOST_LOGS = 64
"""Most logs of a run that are searched: where very many ranks fail, the first ones show why."""


@dataclass(frozen=True)
class Raised:
    """The exception in words, ``text`` for the end of a statement, and the places to look at; empty without one."""

    error: str = ""
    text: str = ""
    where: tuple[str, ...] = ()


def raised(history: History, artifacts: Artifacts, event: Event, error: str = "") -> Raised:
    """Return where the process of an event raised the exception that ended it.

    With ``error``, the text of an exception, only a traceback of this exception counts.
    """
    attempt, rank = event.attempt, event.rank
    if attempt is None or rank is None:
        return Raised()
    logs = artifacts.worker_logs(attempt, rank)
    exits = history.select("rank.exit", attempt=attempt, rank=rank)
    place = next((number for number, end in enumerate(exits) if end.pid == event.pid), len(logs) - 1)
    if not logs or (len(logs) > 1 and len(exits) != len(logs)):
        return Raised()  # the process of each log cannot be determined
    path = logs[min(place, len(logs) - 1)]
    if path not in artifacts.tracebacks:
        if len(artifacts.tracebacks) >= _MOST_LOGS:
            return Raised()
        try:
            artifacts.tracebacks[path] = traceback_at_end(path)
        except OSError:  # the statement stands without it
            artifacts.tracebacks[path] = None
    traceback = artifacts.tracebacks[path]
    if traceback is None or not _is_of(traceback, error):
        return Raised()
    line = f":{traceback.line}" if traceback.line else ""
    return Raised(traceback.error, raised_in(traceback.frames), (f"{artifacts.relative(path)}{line}",))


def _is_of(traceback: LoggedTraceback, error: str) -> bool:
    """Return whether a traceback is of an exception, whose class stands without its module in an agent's record."""
    name, _, text = traceback.error.partition(": ")
    logged = f"{name.rpartition('.')[2]}: {text}".strip()
    recorded = error.split("\n", 1)[0].strip()
    return not error or logged.startswith(recorded) or recorded.startswith(logged)
