"""The process that torchrun names as the cause of a failure, beside the process that was hit.

torchrun names the first failure that it has noticed. With a long monitor interval, after an exit with code 0 and after
a suspension that was another process than the one that was hit (torch 2.13). This says something about the launcher,
and is no failure of the job. The log states what torchrun has *said*; what happened comes from the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from chaos.evidence.facts import exit_status, signal_name, signal_number
from chaos.evidence.injection.identity import other_process
from chaos.history.event import Event
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.torch.torchrun_log import FAILURE, ROOT_CAUSE

Cause = Literal["hit", "ended", "other", "unknown"]
"""``hit``: the process that was hit first. ``ended``: a process that torchrun had told to end before. ``other``: any
other process. ``unknown``: the evidence is missing, or contradicts itself."""

_SUMMARY_LINES = 7
"""Lines below the heading of the root cause that belong to it: the number, and six lines of the failure."""


@dataclass(frozen=True)
class NamedFailure:
    """A process that torchrun has named. ``code`` is negative for a signal. ``launcher`` is torchrun's own process.

    ``sent`` are the signals that torchrun had sent to the process since it started the group; ``logged`` says whether
    the log has a line about such a signal to any process. ``where`` is the line.
    """

    local_rank: int
    pid: int
    code: int
    launcher: int | None
    sent: tuple[int, ...]
    logged: bool
    where: str


@dataclass(frozen=True)
class Comparison:
    """The cause that torchrun names, compared with the history. ``reason`` is a sentence, ``where`` its places."""

    cause: Cause
    reason: str
    where: tuple[str, ...] = ()


def named_failures(events: Sequence[LogEvent]) -> list[NamedFailure]:
    """Return the processes that torchrun names as failed, in the order of its log: one for each restart, and the last.

    ``events`` are those of one log, in its order. It may hold the lines of several torchruns (of several nodes): the
    signals of each are kept apart by its process. A log without such a line has the root cause of its summary.
    """
    named: list[NamedFailure] = []
    sent: dict[int | None, dict[int, list[int]]] = {}
    for event in events:
        pid = event.fields.get("worker_pid")
        if event.kind in ("torchrun.closing", "torchrun.killing") and isinstance(pid, int):
            number = signal_number(event.fields.get("next_text", event.fields.get("signal_text")))
            if number is not None:
                sent.setdefault(event.pid, {}).setdefault(pid, []).append(number)
        elif event.kind == "torchrun.group_start":
            sent.pop(event.pid, None)
        elif event.kind == "torchrun.failed":
            signals = sent.pop(event.pid, {})
            failure = _failure(event.fields, event.pid, signals, event.source)
            named += [] if failure is None else [failure]
    return named or _of_summary(events, sent)


def _of_summary(events: Sequence[LogEvent], sent: dict[int | None, dict[int, list[int]]]) -> list[NamedFailure]:
    """Return the root cause of the only summary; none where there are several, since a rank's text may imitate one."""
    headings = [event for event in events if event.kind == ROOT_CAUSE]
    if len(headings) != 1:
        return []
    (heading,) = headings
    fields: dict[str, object] = {}
    for event in events:
        below = event.line - heading.line
        if event.kind == FAILURE and event.file == heading.file and 0 < below <= _SUMMARY_LINES:
            fields |= {name: value for name, value in event.fields.items() if name not in fields}
    signals = {pid: numbers for by_pid in sent.values() for pid, numbers in by_pid.items()}
    failure = _failure(fields, None, signals, heading.source)
    return [] if failure is None else [failure]


def _failure(
    fields: dict[str, object], launcher: int | None, signals: dict[int, list[int]], where: str
) -> NamedFailure | None:
    local_rank, pid, code = (fields.get(name) for name in ("local_rank", "worker_pid", "code"))
    if not (isinstance(local_rank, int) and isinstance(pid, int) and isinstance(code, int)):
        return None
    return NamedFailure(local_rank, pid, code, launcher, tuple(signals.get(pid, ())), bool(signals), where)


def compare(named: NamedFailure | None, hits: Sequence[Event], exits: Sequence[Event] = ()) -> Comparison:
    """Return whether the named process is the process that was hit first.

    ``hits`` are the records of the acts on processes (``fault.injecting``) before torchrun noticed the failure, on the
    nodes of this torchrun; processes that the first fault has hit together count alike. ``exits`` are the records of
    exits (``rank.exit``). All of one attempt, and all processes numbered as torchrun numbers them.
    """
    if named is None:
        return Comparison("unknown", "torchrun names no process")
    first = sorted((hit for hit in hits if hit.pid is not None), key=lambda hit: hit.mono)
    if not first:
        return Comparison("unknown", "the process that was hit is not recorded", (named.where,))
    same = [hit for hit in first if hit.data.get("fault") == first[0].data.get("fault")]
    status = _status(named.code)
    about = f"torchrun names process {named.pid} (local rank {named.local_rank}, {status})"
    ends = [event for event in exits if event.pid == named.pid]
    for end in ends:
        if _code(end) is not None and _code(end) != named.code:
            return Comparison("unknown", f"{about}, whose end is recorded as {exit_status(end)}", _places(named, [end]))
    struck = [hit for hit in same if hit.pid == named.pid]
    if struck:
        doubt = next(filter(None, (other_process(end, struck) for end in ends)), None)
        if doubt is not None:
            return Comparison("unknown", f"{about}, as the process that was hit, but {doubt}", _places(named, struck))
        return Comparison("hit", f"{about}, which was hit first", _places(named, struck))
    not_hit = f"{about}; process {first[0].pid} of rank {first[0].rank} was hit first"
    if named.sent:
        signals = ", ".join(signal_name(number) for number in named.sent)
        return Comparison(
            "ended", f"{not_hit}, and torchrun had sent {signals} to {named.pid}", _places(named, first[:1])
        )
    if named.code in (-9, -15) and not named.logged:
        reason = f"{not_hit}; the log does not say to which processes torchrun has sent signals"
        return Comparison("unknown", reason, _places(named, first[:1]))
    return Comparison("other", not_hit, _places(named, first[:1]))


def _status(code: int) -> str:
    return f"ended by {signal_name(-code)}" if code < 0 else f"exit code {code}"


def _code(end: Event) -> int | None:
    """Return an exit status as torchrun writes it."""
    number, code = signal_number(end.data.get("signal")), end.data.get("code")
    if number is not None:
        return -number
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _places(named: NamedFailure, events: Sequence[Event]) -> tuple[str, ...]:
    return tuple(place for place in (named.where, *(event.source for event in events)) if place)
