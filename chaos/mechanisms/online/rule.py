"""Part of check ``mechanism``: UCE and HCCE repaired the job online, once, by the handlers that they call."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, places, ranks_text
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
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
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.effect import DeviceError, effect_of
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.recovery.mechanism import REPAIRING

HANDLERS = ("stop", "clean", "repair", "rollback")
"""Handlers that may be called within the repair; the rule itself judges that HCCE copies nothing."""

_STEPS = ("stop", "clean", "repair")
"""Handlers of an online repair in the order in which the SDK calls them."""

_GIVEN_UP = DeviceError("507904", "HCCL has given up its operator")
"""The communication error of a kind of fault that names none."""


def judge(case: Case) -> None:
    """Judge the handlers that were called in every rank."""
    if not case.recovery.succeeds:
        judge_tried(case, HANDLERS)
        return
    calls = {name: case.calls(name) for name in (*_STEPS, "rollback")}
    if not any(calls.values()):
        signs = [event for event in case.logged() if _is_repair(event)]
        judge_silence(case, _expected(case), signs, "a repair", "has no repair")
        return
    judge_calls(case, _expected(case), calls, lambda name, rank: name in ("stop", "clean"))
    _judge_copies(case, calls["repair"])
    _judge_order(case, calls)
    judge_returns(case, _expected(case), calls)
    _judge_log(case)
    _judge_level(case)
    case.collector.settle(_expected(case), f"it did, at step {case.window.step}", case.line)


def _expected(case: Case) -> str:
    name = case.recovery.mechanism
    copied = "parameters of broken ranks from a replica" if case.recovery.copied else "no parameter copied"
    if name == "HCCE":
        name = f"HCCE (at step level: {' and '.join(_words(_error(fault)) for fault in case.window.faults)})"
    return (
        f"{name} repairs the job online in recovery {case.window.number}: stop and clean on every rank once, {copied}"
    )


def _is_repair(event: LogEvent) -> bool:
    return event.kind == "ttp.state" and event.fields.get("state") == "REPAIR"


def _judge_copies(case: Case, copies: dict[int, list[Event]]) -> None:
    expected, collector, line, number = _expected(case), case.collector, case.line, case.window.number
    copied = case.window.copied
    for rank in sorted(copied - copies.keys()):
        observation = f"rank {rank} lost its memory, and repair was not called on it in recovery {number}"
        collector.fail(expected, observation, line, data=about(rank))
    # Where nothing was lost the SDK may have the rank repair its memory by itself; the vendor's SDK calls no rank.
    spared = {rank for fault in case.window.faults if fault.effect.spares_memory for rank in fault.ranks}
    for group in case.plan.layout.replica_groups:
        broken = copied.intersection(group)
        healthy = [rank for rank in group if rank in copies and rank not in copied | spared]
        where = [event for rank in healthy for event in copies[rank]]
        text = f"repair was called on healthy {ranks_text(healthy)} in recovery {number}"
        if broken and not healthy:
            observation = f"no healthy rank of replica group {list(group)} gave its parameters in recovery {number}"
            collector.fail(expected, observation, line, data=about(group))
        elif len(healthy) > len(broken):
            group_text = f"{len(broken)} of replica group {list(group)} had lost their memory"
            collector.fail(expected, f"{text}: {group_text}", line, *places(where), data=about(healthy))
    judge_repaired_step(case, copies)


def _judge_order(case: Case, calls: dict[str, dict[int, list[Event]]]) -> None:
    """Judge that each rank stops, then cleans, then repairs; and that nothing is copied before every rank is clean."""
    expected = "every rank is stopped, then cleaned, before parameters are copied"
    for rank in range(case.plan.layout.ranks):
        firsts = [events[0] for name in _STEPS if (events := calls[name].get(rank, []))]
        judge_rank_order(case, expected, rank, firsts)
    copies = [event for events in calls["repair"].values() for event in events]
    cleaned = case.window.of(case.history.select("handler.exit", attempt=TRAIN, name="clean"))
    pair = suspicious(copies, cleaned)
    if pair is not None:
        first, last, sure = pair
        if sure:
            observation = f"repair was called on rank {first.rank} before rank {last.rank} was clean"
            case.collector.fail(expected, observation, first.source, last.source, data=about(first.rank))
        else:
            observation = f"whether rank {last.rank} was clean when repair was called on rank {first.rank}{UNDECIDED}"
            case.collector.unknown(expected, observation, first.source, last.source, data=about(last.rank))


def _judge_level(case: Case) -> None:
    """Judge that a communication error is the planned one, which no operator's own retry answers.

    The calls of stop and clean show that the step was recovered: an operator's retry calls no handler.
    """
    raised = [
        (fault, event)
        for fault in case.window.faults
        if case.recovery.mechanism == "HCCE"
        for event in case.history.select("fault.raised", attempt=TRAIN, fault=fault.id)
    ]
    for fault, event in raised:
        error = _error(fault)
        if error.code in str(event.data.get("text")):
            continue
        expected = f"the error is one that no operator's own retry answers: {_words(error)}"
        case.collector.unknown(
            expected, f"rank {event.rank} raised {event.data.get('text')!r}", event.source, data=about(event.rank)
        )


def _error(fault: PlannedFault) -> DeviceError:
    """Return the error that a rank must raise; HCCL's own where the kind of fault names no other."""
    return effect_of(fault.kind).error or _GIVEN_UP


def _words(error: DeviceError) -> str:
    return f"{error.meaning}, error {error.code}"


def _judge_log(case: Case) -> None:
    """Judge that the SDK's own log, where there is one, reports as many repairs in all."""
    logged = case.logged()
    if not logged:
        return
    signs = [event for event in logged if _is_repair(event)]
    repairs = [recovery for recovery in case.plan.response.recoveries if recovery.mechanism in REPAIRING]
    tried = [recovery for recovery in repairs if not recovery.succeeds]
    going_on = [recovery for recovery in case.plan.response.goes_on if recovery.mechanism in REPAIRING]
    least = len(going_on)
    expected = f"the SDK repairs {least} times"
    judge_logged_count(case, expected, signs, "repairs in its log", least=least, most=least + len(tried))


def _named(history: History) -> str:
    """Return which of the two it was: only UCE copies parameters."""
    return "UCE" if history.first("handler.enter", attempt=TRAIN, name="repair") else "HCCE"


RULE = Rule(handlers=HANDLERS, judge=judge, phase_ends=phase_ends, named=_named)
