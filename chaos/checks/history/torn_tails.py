"""Part of check ``history``: half a line at the end of a file loses nothing if its writer was ended."""

from __future__ import annotations

import re

from chaos.evidence.facts import signal_number
from chaos.history.event import Event
from chaos.history.reader import History, Problem

_NAME = re.compile(r"history/(?P<attempt>[^/-]+)-(?:rank_(?P<rank>\d+)|launcher(?:_\d+)?)-(?P<pid>\d+)\.jsonl")
GONE = ("host.vanished", "host.rebooted", "host.reboot")
"""Events of a host that has gone with everything on it. A host with a cut connection only (``host.lost``) lives on."""


def torn_by_its_end(problem: Problem, history: History) -> bool:
    """Return whether the writer of a torn tail was ended by a signal, or has gone with its host."""
    if problem.kind != "torn-last-line":
        return False
    file = problem.where.rpartition(":")[0]
    return _of_a_killed_rank(file, history) or _of_a_gone_host(file, history)


def _of_a_killed_rank(file: str, history: History) -> bool:
    writers = {(event.attempt, event.rank, event.pid) for event in _starts(file, history)}
    return any(
        signal_number(event.data.get("signal")) is not None and (event.attempt, event.rank, event.pid) in writers
        for event in history.select("rank.exit")
    )


def _of_a_gone_host(file: str, history: History) -> bool:
    """Return whether the file's process was on a node whose host went in the attempt, with the file's boot."""
    name = _NAME.fullmatch(file)
    if name is None:
        return False
    attempt, rank, pid = name["attempt"], name["rank"], int(name["pid"])
    events = (
        history.select("launcher.found", attempt=attempt, pid=pid)
        if rank is None
        else history.select("rank.found", attempt=attempt, rank=int(rank), pid=pid)
    )
    nodes = {event.data.get("node") for event in events}
    if len(nodes) != 1 or None in nodes:
        return False
    boots = {event.data.get("boot") for event in _starts(file, history)}
    return any(
        fact.data.get("node") in nodes and _in_attempt(fact, attempt, history) and boots <= _boots(fact, boots)
        for event in GONE
        for fact in history.select(event)
    )


def _in_attempt(gone: Event, attempt: str, history: History) -> bool:
    begun = [event for event in history.select("attempt.start") if event.mono <= gone.mono]
    return bool(begun) and begun[-1].attempt == attempt


def _boots(gone: Event, otherwise: set[object]) -> set[object]:
    """Return the boot that has gone; where the event does not name it, any boot may have."""
    match gone.data.get("boot"):
        case {"before": str(boot)} | str(boot):
            return {boot}
        case _:
            return otherwise


def _starts(file: str, history: History) -> list[Event]:
    return [
        event for event in history.select("writer.start", writer="agent") if event.source.rpartition(":")[0] == file
    ]
