"""Part of check ``history``: no process lacks all records of a kind whose existence its other records show.

An agent records the beginning of a step, its end and then its digest, and it records the end of a save before the file
gets its last name. Where a process has none of them, they are lost, and no component is to blame for it. A single one
that is missing may show a step that was not trained.
"""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.last_names import RENAMED, WRITTEN_AS
from chaos.history.reader import History

EXPECTED = "no process lacks all records that its other records show"

_SHOWN_BY = (
    ("step.end", "digest", "the state after step", "the end of no step"),
    ("step.begin", "step.end", "the end of step", "the beginning of no step"),
)
"""The records that may be lost, the later ones that show them, and both in words."""

_Process = tuple[str | None, int | None, int | None]


def judge_lost_records(history: History, collector: Collector) -> None:
    """Judge the steps and the periodic saves of every process. Says nothing where no record is lost."""
    for lost, shown, what, none in _SHOWN_BY:
        recorded = _first(history, lost)
        for process, event in _first(history, shown).items():
            if process not in recorded:
                text = f"rank {event.rank}'s process {event.pid} recorded {what} {event.data.get('step')}, and {none}"
                collector.unknown(EXPECTED, text, event.source, data=about(event.rank, pids=event.pid))
    _judge_saves(history, collector)
    collector.close()


def _first(history: History, name: str) -> dict[_Process, Event]:
    """Return the first event of this name of each process."""
    first: dict[_Process, Event] = {}
    for event in history.select(name):
        first.setdefault((event.attempt, event.rank, event.pid), event)
    return first


def _judge_saves(history: History, collector: Collector) -> None:
    """Judge the saves whose file got another name, and of which no end is recorded."""
    ended = {_file_of(event) for event in history.select("checkpoint.end")}
    begun = {_file_of(event) for event in history.select("checkpoint.begin")}
    for renamed in history.select(RENAMED):
        if _file_of(renamed) in begun - ended:
            text = f"rank {renamed.rank} renamed {renamed.data.get('path')}, and recorded no end of its save"
            collector.unknown(EXPECTED, text, renamed.source, data=about(renamed.rank, pids=renamed.pid))


def _file_of(event: Event) -> tuple[object, ...]:
    """Return the process of an event, and the name under which it wrote the file."""
    return event.attempt, event.rank, event.pid, event.data.get(WRITTEN_AS, event.data.get("path"))
