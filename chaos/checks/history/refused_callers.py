"""Who called at a listener of the run without being of it: told in the report, and doubted where it was a rank."""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, places, text_list
from chaos.history.event import Event
from chaos.history.reader import History

_EXPECTED = "who is not of this run is refused wherever the run listens"


def judge_strangers(history: History, artifacts: Artifacts, found: Collector) -> None:
    """Name every caller that was refused.

    A process that was refused on the channel to the harness and trained all the same is unknown: no fault could have
    been held against it. One that was known already, and only its second call was refused, is not doubted.
    """
    refused = history.select("stranger")
    logged = [
        one
        for attempt in (TRAIN, RESUME)
        for one in artifacts.sdk_events(attempt)
        if one.kind == "ttp.registration_refused"
    ]
    for one in refused:
        trained = one.data.get("channel") == "agents" and one.writer == "harness" and _trained_after(history, one)
        if trained:
            found.unknown(
                "every rank that trains is known to the harness",
                f"process {one.pid} trains as rank {trained.rank}, and was refused: {one.data.get('what')}",
                one.source,
                trained.source,
            )
    if refused or logged:
        told = [f"{one.data.get('channel')}: {_who(one)}{one.data.get('what')}" for one in refused]
        told += [f"controller: a registration was ignored: {one.fields.get('why_text')}" for one in logged]
        found.settle(
            _EXPECTED, f"refused were {text_list(told)}", *places(refused[:3]), *(one.source for one in logged[:3])
        )
    else:
        found.settle(_EXPECTED, "nobody was refused")


def _who(refused: Event) -> str:
    """The process that called, where the kernel has told it; else whoever has recorded the refusal."""
    return f"process {refused.pid}: " if refused.writer == "harness" else f"rank {refused.rank} was called: "


def _trained_after(history: History, refused: Event) -> Event | None:
    if _was_known(history, refused):
        return None
    begun = (one for one in history.select("step.begin", pid=refused.pid) if refused.surely_before(one))
    return next(begun, None)


def _was_known(history: History, refused: Event) -> bool:
    """Whether the harness knew the process as a rank then. After its exit the PID may be another's."""
    found = [one.mono for one in history.select("rank.found", pid=refused.pid) if one.mono <= refused.mono]
    ended = [one.mono for one in history.select("rank.exit", pid=refused.pid) if one.mono <= refused.mono]
    return bool(found) and not any(mono > max(found) for mono in ended)
