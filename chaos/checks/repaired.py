"""Part of check ``mechanism``: the job repaired itself online, once for each planned repair, in the same processes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from chaos.checks.acted import Acted, mechanisms
from chaos.checks.artifacts import Artifacts
from chaos.checks.collect import Collector
from chaos.checks.facts import RESUME, TRAIN, by_rank, places, ranks_text, text_list
from chaos.checks.online import ACTED, UCE, NotTold, Repair, repairs
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.log_event import LogEvent
from chaos.plan.model import Plan

SAME = "every rank keeps its process from the beginning to the end"
_STEPS = ("stop", "clean", "repair")
"""Handlers of an online repair in the order in which the SDK calls them."""


def judge_repaired(plan: Plan, history: History, artifacts: Artifacts, found: Collector) -> None:
    """Judge the handlers that were called in every rank, and that nothing else acted."""
    acted = mechanisms(history, artifacts, TRAIN)
    _judge_alone(plan, history, acted, found)
    _judge_processes(plan, history, found)
    expected = _expected(plan)
    calls = {name: _handlers(history, "handler.enter", name) for name in (*_STEPS, "rollback")}
    try:
        planned = repairs(plan, history)
    except NotTold as reason:
        found.unknown(expected, str(reason), _line(plan))
        found.close()
        return
    logged = [event for event in artifacts.sdk_events(TRAIN) if _is_repair(event)]
    if not any(calls.values()):
        _judge_silence(plan, artifacts, logged, found)
        return
    for repair in planned:
        _judge_repair(plan, repair, calls, found)
        _judge_order(plan, repair, history, calls, found)
    early = [one for name in _STEPS for own in calls[name].values() for one in own if one.mono < planned[0].begin]
    for one in early:
        found.fail(expected, f"{one.data['name']} was called on rank {one.rank} before the fault", one.source)
    _judge_returns(history, found, expected)
    _judge_log(plan, artifacts, logged, found)
    steps = text_list(repair.step for repair in planned)
    found.settle(expected, f"{len(planned)} of {len(planned)}, at step {steps}", _line(plan))


def _line(plan: Plan) -> str:
    line = plan.lines.get("mechanism")
    return f"scenario.yaml:{line}" if line else ""


def _expected(plan: Plan) -> str:
    copied = "parameters of broken ranks from a replica" if plan.mechanism == UCE else "no parameter copied"
    return f"{plan.mechanism} repairs the job online: stop and clean on every rank once for each repair, {copied}"


def _handlers(history: History, event: str, name: str) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for one in history.select(event, attempt=TRAIN, name=name):
        if one.rank is not None:
            found.setdefault(one.rank, []).append(one)
    return found


def _is_repair(event: LogEvent) -> bool:
    return event.kind == "ttp.state" and event.fields.get("state") == "REPAIR"


def _judge_alone(plan: Plan, history: History, acted: Acted, found: Collector) -> None:
    """Nothing but an online repair acts: not even afterwards, and no checkpoint or restart in its place."""
    expected = f"no mechanism but {plan.mechanism} acts"
    if not acted.listened:
        found.unknown(expected, "neither an agent nor the SDK has recorded anything", "history")
    for mechanism, evidence in acted.evidence.items():
        if mechanism != ACTED:
            signs = text_list(dict.fromkeys(seen for seen, _ in evidence))
            found.fail(expected, f"{mechanism} acted: {signs}", _line(plan), *(where for _, where in evidence[:5]))
    for one in history.select("handler.enter", attempt=TRAIN, name="exit"):
        found.fail(expected, f"rank {one.rank} was told to exit", _line(plan), one.source)
    for one in history.select("checkpoint.begin", attempt=TRAIN, kind="end-of-life"):
        found.fail(expected, f"rank {one.rank} saved an end-of-life checkpoint", _line(plan), one.source)
    for one in history.select("attempt.start", attempt=RESUME):
        found.fail(expected, "the job was started again", _line(plan), one.source)
    found.settle(expected, "no sign of another", _line(plan))


def _judge_processes(plan: Plan, history: History, found: Collector) -> None:
    started, identified, ended = (by_rank(history, name, TRAIN) for name in ("agent.start", "rank.found", "rank.exit"))
    processes: dict[int | None, dict[int | None, Event]] = {}
    for one in history.select(attempt=TRAIN):
        if one.writer == "agent" or one.event in ("rank.found", "rank.exit"):
            processes.setdefault(one.rank, {}).setdefault(one.pid, one)
    for rank in range(plan.ranks):
        starts, known, exits = (events.get(rank, []) for events in (started, identified, ended))
        first = processes.get(rank, {})
        if len(first) > 1:
            seen = f"rank {rank} was replaced: processes {text_list(first)}"
            found.fail(SAME, seen, _line(plan), *places(first.values()))
        elif len(starts) > 1:
            found.fail(SAME, f"rank {rank} was started {len(starts)} times", _line(plan), *places(starts))
        for what, events in (("start", starts), ("identification", known), ("exit", exits)):
            if not events:
                found.unknown(SAME, f"no {what} of rank {rank} was recorded", _line(plan))
    found.settle(SAME, f"{plan.ranks} ranks did", _line(plan))


def _judge_silence(plan: Plan, artifacts: Artifacts, logged: list[LogEvent], found: Collector) -> None:
    expected = _expected(plan)
    if logged:
        where = (event.source for event in logged[:3])
        found.unknown(expected, "the SDK's log tells of a repair, but no handler's call was recorded", *where)
    elif artifacts.sdk_events(TRAIN):
        found.fail(expected, "it did not act: no handler was called, and the SDK's log has no repair", _line(plan))
    else:
        found.unknown(expected, "there is neither a handler's call nor a log of the SDK", _line(plan))
    found.close()


def _judge_repair(plan: Plan, repair: Repair, calls: dict[str, dict[int, list[Event]]], found: Collector) -> None:
    expected, line = _expected(plan), _line(plan)
    for name in (*_STEPS, "rollback"):
        for rank in range(plan.ranks):
            own = repair.of(calls[name].get(rank, []))
            if len(own) > 1:
                seen = f"{name} was called {len(own)} times on rank {rank} in repair {repair.number}"
                found.fail(expected, seen, line, *places(own))
            if not own and name in ("stop", "clean"):
                found.fail(expected, f"{name} was not called on rank {rank} in repair {repair.number}", line)
    copies = {rank: own for rank, events in calls["repair"].items() if (own := repair.of(events))}
    wanted = repair.lost if plan.mechanism == UCE else frozenset()
    for rank in sorted(wanted - copies.keys()):
        seen = f"rank {rank} lost its memory, and repair was not called on it in repair {repair.number}"
        found.fail(expected, seen, line)
    for group in plan.replica_groups:
        broken = wanted.intersection(group)
        healthy = [rank for rank in group if rank in copies and rank not in wanted]
        where = [one for rank in healthy for one in copies[rank]]
        told = f"repair was called on healthy {ranks_text(healthy)} in repair {repair.number}"
        if broken and not healthy:
            seen = f"no healthy rank of replica group {list(group)} gave its parameters in repair {repair.number}"
            found.fail(expected, seen, line)
        elif len(healthy) > len(broken):
            group_text = f"{len(broken)} of replica group {list(group)} had lost their memory"
            found.fail(expected, f"{told}: {group_text}", line, *places(where))
    for own in copies.values():
        for one in own:
            step = one.data.get("step")
            if step not in (None, repair.step):
                seen = f"rank {one.rank} was repaired at step {step}"
                found.fail(f"repair {repair.number} is at step {repair.step}", seen, line, one.source)


def _judge_order(
    plan: Plan, repair: Repair, history: History, calls: dict[str, dict[int, list[Event]]], found: Collector
) -> None:
    """On each rank stop, then clean, then repair; and no parameter is copied before every rank is clean."""
    expected = "every rank is stopped, then cleaned, before parameters are copied"
    for rank in range(plan.ranks):
        firsts = [own[0] for name in _STEPS if (own := repair.of(calls[name].get(rank, [])))]
        for before, after in pairwise(firsts):
            if after.mono < before.mono:
                seen = f"{after.data['name']} was called on rank {rank} before {before.data['name']}"
                found.fail(expected, seen, after.source, before.source)
    copies = repair.of(one for own in calls["repair"].values() for one in own)
    cleaned = repair.of(history.select("handler.exit", attempt=TRAIN, name="clean"))
    if copies and cleaned:
        first, last = min(copies, key=lambda one: one.mono), max(cleaned, key=lambda one: one.mono)
        if first.mono < last.mono:
            seen = f"repair was called on rank {first.rank} before rank {last.rank} was clean"
            found.fail(expected, seen, first.source, last.source)


def _judge_returns(history: History, found: Collector, expected: str) -> None:
    for name in (*_STEPS, "rollback"):
        left = _handlers(history, "handler.exit", name)
        for rank, entered in _handlers(history, "handler.enter", name).items():
            if len(left.get(rank, [])) < len(entered):
                seen = f"handler {name} of rank {rank} was called and never returned"
                found.unknown(expected, seen, *places(entered[-1:]))
        for one in (one for own in left.values() for one in own):
            if one.data.get("ok") is False:
                reason = one.data.get("error", "no reason given")
                found.fail(expected, f"handler {name} failed on rank {one.rank}: {reason}", one.source)
            elif one.data.get("ok") is not True:
                found.unknown(expected, f"how handler {name} ended on rank {one.rank} is not recorded", one.source)


def _judge_log(plan: Plan, artifacts: Artifacts, logged: Iterable[LogEvent], found: Collector) -> None:
    """The SDK's own log, where there is one, tells of as many repairs."""
    if not artifacts.sdk_events(TRAIN):
        return
    sources = [event.source for event in logged]
    wanted = len(plan.repair_steps)
    expected = f"the SDK repairs {wanted} times"
    if len(sources) > wanted:
        found.fail(expected, f"{len(sources)} repairs in its log", _line(plan), *sources[:5])
    elif len(sources) < wanted:
        found.unknown(expected, f"{len(sources)} repairs in its log", _line(plan), *sources)
