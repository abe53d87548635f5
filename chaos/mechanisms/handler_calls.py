"""Judgements that repairs within the launch share: the calls of handlers, and the SDK's log about the repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from chaos.evidence.facts import error_text, places
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.observe.logs.log_event import LogEvent

Calls = Mapping[str, Mapping[int, list[Event]]]
"""The calls of each handler, by rank."""


def judge_calls(case: Case, expected: str, calls: Calls, required: Callable[[str, int], bool]) -> None:
    """Judge that no handler is called twice on a rank, and that each required handler is called."""
    collector, number = case.collector, case.window.number
    for name, by_rank in calls.items():
        for rank in range(case.plan.layout.ranks):
            events = by_rank.get(rank, [])
            if len(events) > 1:
                observation = f"{name} was called {len(events)} times on rank {rank} in recovery {number}"
                collector.fail(expected, observation, case.line, *places(events), data=about(rank))
            if not events and required(name, rank):
                observation = f"{name} was not called on rank {rank} in recovery {number}"
                collector.fail(expected, observation, case.line, data=about(rank))


def judge_silence(case: Case, expected: str, signs: Sequence[LogEvent], shown: str, absent: str) -> None:
    """Judge a repair that no call of a handler was recorded for, by the lines of the SDK's log that show it.

    ``shown`` and ``absent`` say in words what the log shows, and what a log without such lines lacks.
    """
    collector = case.collector
    if signs:
        report = collector.fail if case.records_calls("stop") else collector.unknown
        observation = f"the SDK's log shows {shown}, but no call of a handler was recorded"
        report(expected, observation, *(event.source for event in signs[:3]), data=about(case.window.hit))
    elif case.logged():
        observation = f"it did not act: no handler was called, and the SDK's log {absent}"
        collector.fail(expected, observation, case.line, data=about(case.window.hit))
    else:
        collector.unknown(expected, "there is neither a handler's call nor a log of the SDK", case.line)
    collector.close()


def judge_rank_order(case: Case, expected: str, rank: int, events: Sequence[Event]) -> None:
    """Judge the order of calls on one rank; ``events`` are in the order in which the SDK calls."""
    for before, after in pairwise(events):
        if after.mono < before.mono:
            observation = f"{after.data['name']} was called on rank {rank} before {before.data['name']}"
            case.collector.fail(expected, observation, after.source, before.source, data=about(rank))


def judge_repaired_step(case: Case, copies: Mapping[int, list[Event]]) -> None:
    """Judge that state is copied at the step of the recovery, where the call names its step."""
    for event in (call for calls in copies.values() for call in calls):
        step = event.data.get("step")
        if step not in (None, case.window.step):
            case.collector.fail(
                f"recovery {case.window.number} is at step {case.window.step}",
                f"rank {event.rank} was repaired at step {step}",
                case.line,
                event.source,
                data=about(event.rank, step=step, quantity="step", expected=case.window.step, seen=step),
            )


def judge_returns(
    case: Case, expected: str, calls: Calls, excused: Callable[[str, Event], bool] = lambda name, end: False
) -> None:
    """Judge that each handler that was called returns, without an error unless the error is ``excused``."""
    collector = case.collector
    for name, by_rank in calls.items():
        ends = case.calls(name, "handler.exit")
        for rank, entered in by_rank.items():
            if len(ends.get(rank, [])) < len(entered):
                observation = f"handler {name} of rank {rank} was called and never returned"
                collector.unknown(expected, observation, *places(entered[-1:]), data=about(rank))
        for event in (end for of_rank in ends.values() for end in of_rank):
            if excused(name, event):
                continue
            if event.data.get("ok") is False:
                observation = f"handler {name} failed on rank {event.rank}: {error_text(event)}"
                collector.fail(expected, observation, event.source, data=about(event.rank))
            elif event.data.get("ok") is not True:
                observation = f"how handler {name} ended on rank {event.rank} is not recorded"
                collector.unknown(expected, observation, event.source, data=about(event.rank))


def judge_logged_count(
    case: Case, expected: str, signs: Sequence[LogEvent], words: str, *, least: int, most: int
) -> None:
    """Judge the number of repairs in the SDK's log: ``least`` must succeed, and ``most`` may be tried."""
    number = len(signs)
    sources = [event.source for event in signs]
    data = about(case.window.hit, expected=least, seen=number)
    if number > most:
        case.collector.fail(expected, f"{number} {words}", case.line, *sources[:5], data=data)
    elif number < least:
        case.collector.unknown(expected, f"{number} {words}", case.line, *sources, data=data)
