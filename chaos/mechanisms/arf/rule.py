"""Part of check ``mechanism``: ARF replaced the lost ranks, and only those, by the handlers that it calls."""

from __future__ import annotations

from chaos.base.rank_sets import spans
from chaos.evidence.facts import TRAIN, places, ranks_text
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.mechanisms.failed_attempt import judge_tried
from chaos.mechanisms.handler_calls import (
    judge_calls,
    judge_logged_count,
    judge_rank_order,
    judge_repaired_step,
    judge_returns,
    judge_silence,
)
from chaos.mechanisms.order import UNDECIDED, suspicious
from chaos.mechanisms.registry import Rule
from chaos.mechanisms.repair_phases import phase_ends
from chaos.plan.budgets import PROFILES
from chaos.plan.recovery.mechanism import ONLINE

HANDLERS = ("stop", "clean", "rebuild_group", "repair", "rollback")
"""Handlers in the order in which the SDK calls them. MindSpore registers no rollback; another job may."""

_ON_SURVIVORS = ("stop", "clean", "rebuild_group")
"""An online repair that has failed before has called the first two; the SDK does not call them again."""

_ON_NEW = tuple(name for name in HANDLERS if name not in ("stop", "clean"))
"""The handlers that are then left to ARF."""

_EARLY = 0.95
"""Share of the wait for a new process that must have passed. The vendor documents a round number."""


def judge(case: Case) -> None:
    """Judge the handlers that were called in every rank, and the SDK's log."""
    if not case.recovery.succeeds:
        _judge_tried(case)
        return
    calls = {name: case.calls(name) for name in HANDLERS}
    if not any(calls.values()):
        signs = [event for event in case.logged() if _is_arf(event.kind, event.fields)]
        judge_silence(case, _expected(case), signs, "it", "shows no attempt")
        return
    _judge_survivors(case, calls)
    _judge_copies(case, calls["repair"])
    _judge_order(case, calls)
    _judge_returns(case, calls)
    _judge_reads(case)
    _judge_starts(case)
    _judge_log(case)
    case.collector.settle(_expected(case), f"it did, at step {case.window.step}", case.line)


def _expected(case: Case) -> str:
    lost = spans(case.window.restarted)
    return (
        f"ARF replaces ranks {lost} in recovery {case.window.number}: the others stop, clean and rebuild their groups "
        "once, and the new processes get the state of a replica"
    )


def _judge_tried(case: Case) -> None:
    """Judge that it failed: by a handler, or because no new process came, which only the SDK's log shows.

    A failed clean of an online repair before it belongs to the online repair.
    """
    if case.recovery.restarted:
        judge_tried(case, _ON_NEW if _tried_online(case) else HANDLERS)
        return
    expected = "ARF is tried, no new process comes, and the next mechanism follows"
    collector, calls = case.collector, case.calls("stop")
    begun = [event for event in case.logged() if _is_arf(event.kind, event.fields)]
    if not begun:
        if case.logged():
            collector.fail(
                expected, "the SDK's log shows no attempt to replace a rank", case.line, data=about(case.window.hit)
            )
        else:
            collector.unknown(expected, "there is no log of the SDK", case.line, data=about(case.window.hit))
    if case.calls("rebuild_group"):
        collector.fail(
            expected,
            "groups were rebuilt",
            case.line,
            *places(_flat(case.calls("rebuild_group"))[:3]),
            data=about(case.window.hit),
        )
    if not calls:
        collector.unknown(expected, "no rank's stop was recorded", case.line)
    _judge_wait(case, expected)
    collector.settle(expected, "it was, and none came", case.line, *(event.source for event in begun[:3]))


def _judge_wait(case: Case, expected: str) -> None:
    """Judge that it was given up when its time was up, not before.

    The time runs from the last clean on, after which new processes may come.
    """
    wait = PROFILES[case.plan.response.timings]["ARF"].replacement
    expected = f"{expected} after {wait:g} s"
    cleaned = _flat(case.calls("clean", "handler.exit"))
    given_up = [event for name in ("save_ckpt", "exit") for event in _flat(case.calls(name))]
    if not cleaned or not given_up:
        what = "when the last rank was clean" if not cleaned else "when the next mechanism began"
        case.collector.unknown(expected, f"nothing shows {what}", case.line)
        return
    last = max(cleaned, key=lambda event: event.mono)
    first = min(given_up, key=lambda event: event.mono)
    waited = (first.mono - last.mono) / 1e9
    short = waited - wait * _EARLY
    if abs(short) < first.uncertainty(last) / 1e9:
        observation = f"it was given up after {waited:.3f} s, by the clocks of two hosts"
        case.collector.unknown(
            expected,
            observation,
            case.line,
            last.source,
            first.source,
            data=about(quantity="duration", expected=wait, seen=waited, unit="s"),
        )
    elif short < 0:
        case.collector.fail(
            expected,
            f"it was given up after {waited:.3f} s",
            case.line,
            last.source,
            first.source,
            data=about(quantity="duration", expected=wait, seen=waited, unit="s"),
        )


def _is_arf(kind: str, fields: object) -> bool:
    return kind == "ttp.repair_begin" and isinstance(fields, dict) and fields.get("repair") == "arf"


def _judge_survivors(case: Case, calls: dict[str, dict[int, list[Event]]]) -> None:
    """Judge that every survivor stops, cleans and rebuilds its groups, and that no handler is called twice."""

    def required(name: str, rank: int) -> bool:
        return name in _ON_SURVIVORS and rank not in case.window.restarted

    judge_calls(case, _expected(case), calls, required)


def _tried_online(case: Case) -> bool:
    """Return whether an online repair was tried before in this recovery.

    It has stopped all ranks and failed to clean some.
    """
    return any(recovery.mechanism in ONLINE for recovery in case.window.tried)


def _judge_copies(case: Case, copies: dict[int, list[Event]]) -> None:
    """Judge that each new process gets the state of one rank of its replica group, and no other rank takes part."""
    expected, collector, line, number = _expected(case), case.collector, case.line, case.window.number
    new = case.window.copied
    for rank in sorted(new - copies.keys()):
        collector.fail(
            expected, f"repair was not called on the new rank {rank} in recovery {number}", line, data=about(rank)
        )
    for group in case.plan.layout.replica_groups:
        getting = new.intersection(group)
        giving = [rank for rank in group if rank in copies and rank not in new]
        where = places(event for rank in giving for event in copies[rank])
        if getting and not giving:
            observation = f"no surviving rank of replica group {list(group)} gave its state in recovery {number}"
            collector.fail(expected, observation, line, data=about(group))
        elif len(giving) > len(getting):
            observation = (
                f"repair was called on surviving {ranks_text(giving)} in recovery {number}, though "
                f"{len(getting)} of replica group {list(group)} were lost"
            )
            collector.fail(expected, observation, line, *where, data=about(giving))
    judge_repaired_step(case, copies)


def _judge_order(case: Case, calls: dict[str, dict[int, list[Event]]]) -> None:
    """Judge the order of handlers on each rank, and that nothing is copied before all survivors' groups are rebuilt."""
    expected = "every surviving rank is stopped, cleaned and in a new group before any state is copied"
    for rank in range(case.plan.layout.ranks):
        lasts = [events[-1] for name in HANDLERS if (events := calls[name].get(rank, []))]
        judge_rank_order(case, expected, rank, lasts)
    copies = _flat(calls["repair"])
    rebuilt = case.window.of(case.history.select("handler.exit", attempt=TRAIN, name="rebuild_group"))
    pair = suspicious(copies, rebuilt)
    if pair is not None:
        first, last, sure = pair
        if sure:
            observation = f"repair was called on rank {first.rank} before rank {last.rank} had rebuilt its groups"
            case.collector.fail(expected, observation, first.source, last.source, data=about(first.rank))
        else:
            called = f"when repair was called on rank {first.rank}"
            observation = f"whether rank {last.rank} had rebuilt its groups {called}{UNDECIDED}"
            case.collector.unknown(
                expected, observation, first.source, last.source, data=about((last.rank, first.rank))
            )


def _judge_returns(case: Case, calls: dict[str, dict[int, list[Event]]]) -> None:
    """Judge that every handler returns well, except a clean that failed before: its rank is replaced for it."""
    tried_online = _tried_online(case)

    def excused(name: str, end: Event) -> bool:
        return name == "clean" and tried_online and end.rank in case.window.restarted

    judge_returns(case, _expected(case), calls, excused)


def _judge_reads(case: Case) -> None:
    """Judge that the state of the new processes comes from memory."""
    loads = case.window.of(case.history.select("load.begin", attempt=TRAIN))
    for event in loads[:5]:
        observation = f"rank {event.rank} read {event.data.get('path')}"
        case.collector.fail("no checkpoint is read", observation, case.line, event.source, data=about(event.rank))


def _judge_starts(case: Case) -> None:
    """Judge that each lost rank is started again once for this incident, and no other rank is."""
    starts: dict[int | None, list[Event]] = {}
    for event in case.window.of(case.history.select("agent.start", attempt=TRAIN)):
        starts.setdefault(event.rank, []).append(event)
    expected = "exactly one rescheduling answers the fault"
    for rank in range(case.plan.layout.ranks):
        own_starts, planned_starts = starts.get(rank, []), int(rank in case.window.restarted)
        if len(own_starts) > planned_starts:
            observation = f"rank {rank} was started {len(own_starts)} times in recovery {case.window.number}"
            case.collector.fail(expected, observation, case.line, *places(own_starts), data=about(rank))
        elif len(own_starts) < planned_starts:
            observation = f"no start of a new process of rank {rank} was recorded in recovery {case.window.number}"
            case.collector.unknown(expected, observation, case.line, data=about(rank))


def _judge_log(case: Case) -> None:
    """Judge that the SDK's own log, where there is one, reports as many reschedulings as the plan has."""
    logged = case.logged()
    if not logged:
        return
    signs = [event for event in logged if _is_arf(event.kind, event.fields)]
    planned = [recovery for recovery in case.plan.response.recoveries if recovery.mechanism == "ARF"]
    least = len([recovery for recovery in planned if recovery.succeeds])
    expected = f"the SDK replaces lost ranks {least} times"
    judge_logged_count(case, expected, signs, "times by its log", least=least, most=len(planned))


def _flat(calls: dict[int, list[Event]]) -> list[Event]:
    return [event for events in calls.values() for event in events]


RULE = Rule(handlers=(*HANDLERS, "exit"), judge=judge, phase_ends=phase_ends)
