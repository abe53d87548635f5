"""Callers at a listener of the run that do not belong to it: named in the report, and doubted where one was a rank."""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, places, text_list
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History

_EXPECTED = "every listener of the run refuses callers from outside the run"


def judge_refused_callers(history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Name every caller that was refused.

    A process that was refused on the channel to the harness and trained all the same makes the finding unknown: no
    fault could have been held against it. A known process with a refused second call is not doubted.
    """
    refused = history.select("caller.refused")
    logged = [
        event
        for attempt in (TRAIN, RESUME)
        for event in artifacts.sdk_events(attempt)
        if event.kind == "ttp.registration_refused"
    ]
    for event in refused:
        trained = event.data.get("channel") == "agents" and event.writer == "harness" and _trained_after(history, event)
        if trained:
            collector.unknown(
                "every rank that trains is known to the harness",
                f"process {event.pid} trains as rank {trained.rank}, and was refused: {event.data.get('what')}",
                event.source,
                trained.source,
                data=about(trained.rank, pids=event.pid),
            )
    if refused or logged:
        callers = [f"{event.data.get('channel')}: {_who(event)}{event.data.get('what')}" for event in refused]
        callers += [f"controller: a registration was ignored: {event.fields.get('why_text')}" for event in logged]
        collector.settle(
            _EXPECTED,
            f"refused were {text_list(callers)}",
            *places(refused[:3]),
            *(event.source for event in logged[:3]),
        )
    else:
        collector.settle(_EXPECTED, "no caller was refused")


def _who(refused: Event) -> str:
    """Return the calling process, if the kernel has named it; else the process that recorded the refusal."""
    return f"process {refused.pid}: " if refused.writer == "harness" else f"rank {refused.rank} was called: "


def _trained_after(history: History, refused: Event) -> Event | None:
    if _was_known(history, refused):
        return None
    begun = (event for event in history.select("step.begin", pid=refused.pid) if refused.surely_before(event))
    return next(begun, None)


def _was_known(history: History, refused: Event) -> bool:
    """Return whether the harness knew the process as a rank at the time. After its exit the PID may be another's."""
    identified = [event.mono for event in history.select("rank.found", pid=refused.pid) if event.mono <= refused.mono]
    ended = [event.mono for event in history.select("rank.exit", pid=refused.pid) if event.mono <= refused.mono]
    return bool(identified) and not any(mono > max(identified) for mono in ended)
