"""Part of check ``mechanism``: TSP paused all ranks after the same step, for as long as asked, and they went on."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, places, ranks_text, text_list
from chaos.evidence.statement_data import about
from chaos.faults.pause.proof import Halt, halts
from chaos.mechanisms.case import Case
from chaos.mechanisms.registry import Rule
from chaos.mechanisms.tsp.phases import phase_ends
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.parts.fault import PlannedFault

HANDLERS = ("stream_sync",)
"""The SDK has a paused rank wait for the remaining work of its device."""


def judge(case: Case) -> None:
    """Judge the stops of every rank within this pause."""
    fault = case.window.faults[0]
    expected = _expected(case, fault)
    collector = case.collector
    stops_by_rank = {rank: _of_span(case, halts(case.history, rank)) for rank in range(case.plan.layout.ranks)}
    if not any(stops_by_rank.values()):
        _judge_silence(case, expected)
        return
    for rank, stops in stops_by_rank.items():
        if not stops:
            collector.fail(expected, f"rank {rank} was not paused", case.line, data=about(rank))
        elif len(stops) > 1:
            observation = f"rank {rank} was paused {len(stops)} times"
            collector.fail(expected, observation, case.line, *places(halt.enter for halt in stops), data=about(rank))
    first = {rank: stops[0] for rank, stops in stops_by_rank.items() if stops}
    _judge_step(case, fault, expected, first)
    if case.recovery.succeeds:
        _judge_rest(case, expected, first)
        _judge_length(case, fault, expected, first)
        _judge_switch(case, fault, first)
    else:
        _judge_broken_off(case, first)
    _judge_log(case)
    collector.settle(expected, f"all of them did, after step {min(halt.step for halt in first.values())}", case.line)


def _expected(case: Case, fault: PlannedFault) -> str:
    number = case.window.number
    if not case.recovery.succeeds:
        return f"TSP pauses every rank after the same step in recovery {number}, and none goes on: a rank is lost"
    seconds = _seconds(fault)
    return f"TSP pauses every rank after the same step in recovery {number}, for at least {seconds:g} s, and all go on"


def _seconds(fault: PlannedFault) -> float:
    return float(fault.parameters.get("seconds", 0))


def _of_span(case: Case, stops: list[Halt]) -> list[Halt]:
    return [halt for halt in stops if case.window.holds(halt.noticed)]


def _judge_silence(case: Case, expected: str) -> None:
    logged = [event for event in case.logged() if _is_pause(event)]
    if logged:
        report = case.collector.fail if case.records_calls("stream_sync") else case.collector.unknown
        where = (event.source for event in logged[:3])
        report(
            expected, "the SDK's log shows a pause, but no rank has recorded one", *where, data=about(case.window.hit)
        )
    elif case.logged() or case.history.select("pause.enter", attempt=TRAIN):
        case.collector.fail(expected, "no rank was paused", case.line, data=about(case.window.hit))
    else:
        case.collector.unknown(expected, "neither a rank nor the SDK has recorded anything of a pause", case.line)
    case.collector.close()


def _judge_step(case: Case, fault: PlannedFault, expected: str, first: dict[int, Halt]) -> None:
    steps = sorted({halt.step for halt in first.values()})
    where = places(halt.enter for halt in first.values())
    if len(steps) > 1:
        case.collector.fail(
            expected,
            f"they were paused after steps {text_list(steps)}",
            case.line,
            *where[:4],
            data=about(first, step=steps[0], fault=fault.id),
        )
    asked = fault.trigger.get("step")
    if isinstance(asked, int) and steps[0] < asked:
        observation = f"paused after step {steps[0]}, although it was asked for in step {asked}"
        case.collector.fail(
            expected,
            observation,
            case.line,
            *where[:4],
            data=about(first, step=steps[0], fault=fault.id, quantity="step", expected=asked, seen=steps[0]),
        )


def _judge_rest(case: Case, expected: str, first: dict[int, Halt]) -> None:
    """Judge that a paused rank does not train meanwhile, whatever its return from the pause says."""
    for rank, halt in first.items():
        until = None if halt.exit is None else halt.exit.mono
        for event in case.history.select("step.begin", attempt=TRAIN, rank=rank):
            if event.mono > halt.enter.mono and (until is None or event.mono < until):
                observation = f"rank {rank} began step {event.data.get('step')} while it was paused"
                case.collector.fail(
                    expected,
                    observation,
                    case.line,
                    event.source,
                    halt.enter.source,
                    data=about(rank, step=event.data.get("step")),
                )


def _judge_length(case: Case, fault: PlannedFault, expected: str, first: dict[int, Halt]) -> None:
    collector = case.collector
    stuck = [rank for rank, halt in first.items() if halt.exit is None]
    if stuck:
        collector.fail(
            expected,
            f"{ranks_text(stuck)} did not go on",
            case.line,
            *places(first[r].enter for r in stuck),
            data=about(stuck),
        )
        return
    last_in = max(first.values(), key=lambda halt: halt.noticed.mono)
    ends = [halt.exit for halt in first.values() if halt.exit is not None]
    first_out = min(ends, key=lambda event: event.mono)
    lasted = (first_out.mono - last_in.noticed.mono) / 1e9
    doubt = max((halt.noticed.uncertainty(end) for halt in first.values() for end in ends), default=0) / 1e9
    if abs(lasted - _seconds(fault)) < doubt:
        observation = f"all of them were paused for {lasted:.3f} s ± {doubt:.3f} s, by the clocks of their hosts"
        collector.unknown(
            expected,
            observation,
            case.line,
            last_in.noticed.source,
            first_out.source,
            data=about(first, fault=fault.id, quantity="duration", expected=_seconds(fault), seen=lasted, unit="s"),
        )
    elif lasted < _seconds(fault):
        observation = f"all of them were paused for {lasted:.3f} s"
        collector.fail(
            expected,
            observation,
            case.line,
            last_in.noticed.source,
            first_out.source,
            data=about(first, fault=fault.id, quantity="duration", expected=_seconds(fault), seen=lasted, unit="s"),
        )


def _judge_switch(case: Case, fault: PlannedFault, first: dict[int, Halt]) -> None:
    """Judge that every rank has switched to the backup network while it was paused."""
    if not fault.parameters.get("switch"):
        return
    expected = "every rank switches to the backup network during the pause"
    collector = case.collector
    for rank, halt in first.items():
        done = case.history.select("network.switched", attempt=TRAIN, rank=rank, fault=fault.id)
        if not done:
            collector.fail(
                expected, f"rank {rank} has recorded no switch", case.line, halt.enter.source, data=about(rank)
            )
            continue
        if done[0].data.get("ok") is not True:
            reason = done[0].data.get("error", "no reason given")
            collector.fail(expected, f"rank {rank} could not switch: {reason}", done[0].source, data=about(rank))
        if done[0].mono < halt.noticed.mono or (halt.exit is not None and done[0].mono > halt.exit.mono):
            collector.fail(
                expected, f"rank {rank} switched while it trained", done[0].source, halt.enter.source, data=about(rank)
            )
        joined = case.window.of(case.history.select("network.joined", attempt=TRAIN, rank=rank))
        if not any(event.data.get("network") == "backup" for event in joined):
            collector.unknown(
                expected,
                f"rank {rank} has not recorded over which network it goes on",
                done[0].source,
                data=about(rank),
            )
    collector.settle(expected, f"{len(first)} ranks did", case.line)


def _judge_broken_off(case: Case, first: dict[int, Halt]) -> None:
    expected = "no rank trains on after a pause in which a rank was lost"
    for rank, halt in first.items():
        later = [
            event
            for event in case.history.select("step.begin", attempt=TRAIN, rank=rank)
            if event.mono > halt.noticed.mono and case.window.holds(event)
        ]
        if later:
            observation = f"rank {rank} began step {later[0].data.get('step')}"
            case.collector.fail(
                expected,
                observation,
                case.line,
                later[0].source,
                halt.enter.source,
                data=about(rank, step=later[0].data.get("step")),
            )
    case.collector.settle(expected, f"{len(first)} ranks stayed where they were", case.line)


def _is_pause(event: LogEvent) -> bool:
    return event.kind == "ttp.state" and event.fields.get("state") == "PAUSE"


def _judge_log(case: Case) -> None:
    """Judge that the SDK's own log, where there is one, reports as many pauses in all."""
    logged = case.logged()
    if not logged:
        return
    sources = [event.source for event in logged if _is_pause(event)]
    planned_count = sum(recovery.mechanism == "TSP" for recovery in case.plan.response.recoveries)
    expected = f"the SDK pauses {planned_count} times"
    if len(sources) > planned_count:
        case.collector.fail(
            expected,
            f"{len(sources)} pauses in its log",
            case.line,
            *sources[:5],
            data=about(expected=planned_count, seen=len(sources)),
        )
    elif len(sources) < planned_count:
        case.collector.unknown(
            expected,
            f"{len(sources)} pauses in its log",
            case.line,
            *sources,
            data=about(expected=planned_count, seen=len(sources)),
        )


RULE = Rule(handlers=HANDLERS, judge=judge, phase_ends=phase_ends, failures=frozenset({"ttp.pause_failed"}))
