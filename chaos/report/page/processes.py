"""A process of a rank: its steps, what lasted in it, its moments, and its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chaos.evidence.facts import exit_status
from chaos.evidence.logged import Launch
from chaos.evidence.text import readable
from chaos.history.event import Event
from chaos.report.page.model import Mark, Process, Span
from chaos.report.page.moments import Clock, finite, in_words, step_in
from chaos.report.page.step_blocks import Step, blocks

_SPANS = {
    "checkpoint": ("checkpoint.begin", "checkpoint.end", "save"),
    "load": ("load.begin", "load.end", "load"),
    "handler": ("handler.enter", "handler.exit", "handler"),
    "pause": ("pause.enter", "pause.exit", "pause"),
    "barrier": ("barrier.reached", "barrier.released", "held"),
}
"""Two events that begin and end something, and its kind on the page."""

_HANDLERS = {"stop": "stop", "clean": "stop", "repair": "repair", "rebuild_group": "repair", "rollback": "repair"}
"""Kinds of the handlers of the SDK that stop and repair a rank, by their names."""

_UNHELD = {
    "barrier": ("step.begin", "step.end", "fault.raised", "error.reported", "error.uncaught", "train.begin"),
}
"""Events after which something has ended too: a rank that goes on, or that has its error, is not held any more."""

_PASSED = 0.001
"""A shorter pause is none, in seconds: the rank has passed the point at which the SDK may hold it, as in each step."""

_MARKS = {
    "error.uncaught": "error",
    "error.reported": "error",
    "fault.raised": "fault",
    "fault.acting": "fault",
    "fault.slowed": "fault",
    "fault.device": "fault",
    "train.begin": "train",
    "train.end": "train",
    "train.joins": "train",
    "graph.compiled": "train",
    "initial": "train",
    "communicator.joined": "train",
    "checkpoint.read": "train",
}
"""Moments of a rank by their events; the SDK's are added by the beginning of their names."""


def process_of(
    attempt: str,
    pid: int,
    events: Sequence[Event],
    printed: Launch | None,
    most: int,
    moments: Sequence[float],
    clock: Clock,
) -> Process:
    """Return a process from its events. Its steps are ``blocks``, at most about ``most``, single near ``moments``."""
    ends = [event for event in events if event.event == "rank.exit"]
    recorded = [event for event in events if event.writer != "harness"] or list(events)
    begin, end = clock.seconds(recorded[0].mono), clock.seconds((ends or recorded)[-1].mono)
    spans = [*_spans(recorded, end, clock), *_compiled(recorded, begin, clock)]
    training = next((event for event in recorded if event.event == "train.begin"), None)
    if training is not None:
        text = "from the process's start to its training"
        spans.insert(0, Span("start", "start", begin, clock.seconds(training.mono), text))
    marks = [*_moments(recorded, clock)]
    marks += [Mark(clock.seconds(event.mono), "exit", f"{exit_status(event)} ({event.source})") for event in ends]
    exit_text = exit_status(ends[-1]) if ends else None
    steps = blocks(list(_steps(recorded, clock)), most, moments)
    if not steps and printed is not None and printed.first is not None and printed.last is not None:
        # Only its log has its steps: their numbers, without times.
        since = begin if training is None else clock.seconds(training.mono)
        steps = ((printed.first.step, printed.last.step, since, max(since, end)),)
    return Process(attempt, pid, begin, max(begin, end), exit_text, steps, tuple(spans), tuple(marks))


def _steps(events: Iterable[Event], clock: Clock) -> Iterator[Step]:
    """Yield the steps that a process has ended, and last the one that it was in when its record stops."""
    begun: tuple[int, float] | None = None
    last = 0.0
    for event in events:
        if event.event not in ("step.begin", "step.end"):
            last = clock.seconds(event.mono)
            continue
        step, now = step_in(event), clock.seconds(event.mono)
        last = now
        if step is None:
            continue
        if event.event == "step.begin":
            if begun is not None:
                yield begun[0], begun[1], now
            begun = step, now
        elif begun is not None and begun[0] == step:
            yield step, begun[1], now
            begun = None
    if begun is not None:
        yield begun[0], begun[1], max(begun[1], last)


def _spans(events: Iterable[Event], end: float, clock: Clock) -> Iterator[Span]:
    begun: dict[str, Event] = {}
    for event in events:
        for name, (first, last, _) in _SPANS.items():
            if event.event == first:
                begun[name] = event
            elif name in begun and event.event in (last, *_UNHELD.get(name, ())):
                start = begun.pop(name)
                begin, until = clock.seconds(start.mono), clock.seconds(event.mono)
                if name != "pause" or until - begin >= _PASSED:
                    yield Span(*_kind(name, start), begin, until, in_words(start))
    for name, start in begun.items():
        since = clock.seconds(start.mono)
        yield Span(*_kind(name, start), since, max(since, end), f"{in_words(start)}; its end is not recorded")


def _kind(span: str, start: Event) -> tuple[str, str]:
    """Return the kind of a span, and its name."""
    kind = _SPANS[span][2]
    if span != "handler":
        return kind, kind
    name = readable(str(start.data.get("name")))
    return _HANDLERS.get(name, kind), name


def _compiled(events: Iterable[Event], begin: float, clock: Clock) -> Iterator[Span]:
    """Yield the compilations, which are recorded at their ends with their lengths."""
    for event in events:
        seconds = finite(event.data.get("seconds")) if event.event == "graph.compiled" else None
        if seconds is not None and seconds > 0:
            end = clock.seconds(event.mono)
            yield Span("compile", "compile", max(begin, end - seconds), end, in_words(event))


def _moments(events: Iterable[Event], clock: Clock) -> Iterator[Mark]:
    for event in events:
        kind = _MARKS.get(event.event, "sdk" if event.event.startswith("sdk.") else None)
        if kind is not None:
            yield Mark(clock.seconds(event.mono), kind, in_words(event))
