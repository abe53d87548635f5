"""Part of check ``mechanism``: the state after every committed step is recorded, so that the groups can be compared.

Check ``consistency`` compares the states that are recorded. After a fault nothing is compared with the fault-free run,
so a step without a record of its state would be compared with nothing, and so would a parameter that no group records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from chaos.base.rank_sets import spans
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, digests, step_of, text_list
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.ft.plan import NAME
from chaos.mechanisms.ft.votes import committed_after, committed_by_step
from chaos.plan.describe import count
from chaos.plan.model import Plan

RECORDED = "the state of every group after each step that it commits is recorded"


def judge_recorded(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the records of the faulted launch. Says nothing where FT is off."""
    if NAME not in plan.fault_tolerance.protection:
        return
    line, states = line_of(plan, "mechanism"), digests(history, TRAIN)
    wanted, last, whole = _digested(artifacts), _last_of_lost(plan, history), _names(artifacts)
    compared = 0
    for rank in range(plan.layout.ranks):
        committed = {step for step, votes in committed_by_step(history).items() if rank in votes}
        steps = committed if wanted is None else committed & wanted
        missing = sorted(steps - states.get(rank, {}).keys() - last.get(rank, set()))
        compared += len(steps) - len(missing)
        if missing:
            text = f"no state of rank {rank} after step {spans(missing)} is recorded"
            collector.unknown(RECORDED, text, line, data=about(rank, step=missing[0]))
        recorded = (states[rank][step] for step in sorted(steps & states.get(rank, {}).keys()))
        _judge_whole(rank, recorded, whole, line, collector)
    if not compared:
        collector.unknown(RECORDED, "no state after a committed step is recorded", line)
    collector.settle(RECORDED, count(compared, "state"), line)


def _judge_whole(
    rank: int,
    recorded: Iterable[Event],
    whole: Mapping[tuple[int | None, object], Set[str]],
    line: str,
    collector: Collector,
) -> None:
    """Judge that no recorded state lacks a parameter: if it is lacking on every group, nothing else shows it."""
    for state in recorded:
        step = step_of(state)
        lacking = sorted(whole.get((rank, step), frozenset()) - (state.data.get("parameters") or {}).keys())
        if lacking:
            text = f"the state of rank {rank} after step {step} is recorded without {text_list(lacking)}"
            collector.unknown(RECORDED, text, line, state.source, data=about(rank, step=step, parameters=lacking))
            return


def _names(artifacts: Artifacts) -> dict[tuple[int | None, object], Set[str]]:
    """Return what the fault-free run has recorded of each state, by rank and step."""
    recorded = [] if artifacts.baseline is None else artifacts.baseline.select("digest")
    return {(event.rank, event.data.get("step")): (event.data.get("parameters") or {}).keys() for event in recorded}


def _digested(artifacts: Artifacts) -> set[int] | None:
    """Return the steps after which the fault-free run has recorded states; None for every step, without such a run."""
    if artifacts.baseline is None:
        return None
    steps = {event.data.get("step") for event in artifacts.baseline.select("digest")}
    return {step for step in steps if isinstance(step, int)}


def _last_of_lost(plan: Plan, history: History) -> dict[int, set[int]]:
    """Return the last step of each process that was lost: it may have ended before it could record the state."""
    hit = {rank for fault in plan.faults for rank in fault.ranks}
    last: dict[int, dict[int | None, int]] = {}
    for vote in committed_after(history, 0):
        step = vote.data.get("step")
        if vote.rank in hit and isinstance(step, int):
            last.setdefault(vote.rank or 0, {})[vote.pid] = step
    return {rank: {step for _, step in list(by_pid.items())[:-1]} for rank, by_pid in last.items()}
