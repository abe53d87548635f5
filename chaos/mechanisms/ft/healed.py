"""Part of check ``mechanism``: a replica group that is back goes on with the state of the others, and not without."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.facts import TRAIN, digests, text_list
from chaos.evidence.statement_data import REPLICA, about
from chaos.history.event import Event
from chaos.mechanisms.case import Case
from chaos.mechanisms.ft.votes import VOTE
from chaos.plan.describe import count


def judge_healed(case: Case) -> None:
    """Judge the first state after the loss of each group against the state of a group that trained on."""
    expected = "a group that is back goes on with the state of another group after the same step"
    states = digests(case.history, TRAIN)
    compared = 0
    for rank in sorted(case.window.copied):
        compared += _judge(case, rank, expected, states)
    case.collector.settle(
        expected, f"{count(compared, 'group')}, by the digests of weights and optimizer state", case.line
    )


def _judge(case: Case, rank: int, expected: str, states: Mapping[int, Mapping[int, Event]]) -> bool:
    """Judge one group. Returns whether its state was compared."""
    collector, line = case.collector, case.line
    if rank in case.window.restarted:
        returned = case.window.of(case.history.select("agent.start", attempt=TRAIN, rank=rank))
    else:
        returned = case.history.select("agent.start", attempt=TRAIN, rank=rank)[:1]  # it lives on
    pids = {event.pid for event in returned}
    own_votes = [vote for vote in _since_back(case, rank) if vote.pid in pids]
    committed = next((vote for vote in own_votes if vote.data.get("committed") is True), None)
    healed = next((vote for vote in own_votes if vote.data.get("healed") is True), None)
    if committed is not None and (healed is None or healed.mono > committed.mono):
        how = "started again" if rank in case.window.restarted else "continued"
        text = f"rank {rank}, {how}, committed step {committed.data.get('step')} without a state from another"
        collector.fail(expected, text, line, committed.source, data=about(rank, step=_step(committed)))
        return False
    begin = next((event for event in _of(case, "train.begin", rank) if event.pid in pids), None)
    initial = next((event for event in _of(case, "initial", rank) if event.pid in pids), None)
    if healed is None or begin is None or initial is None:
        process = "new process" if rank in case.window.restarted else "continued process"
        text = f"no state of rank {rank}'s {process} is recorded"
        collector.unknown(expected, text, line, data=about(rank))
        return False
    return _compare(case, rank, expected, begin, initial, states)


def _compare(
    case: Case, rank: int, expected: str, begin: Event, initial: Event, states: Mapping[int, Mapping[int, Event]]
) -> bool:
    collector, step = case.collector, begin.data.get("initial_step")
    others = sorted(set(range(case.plan.layout.ranks)) - case.window.copied)
    theirs = next((event for other in others if (event := states.get(other, {}).get(_as_step(step)))), None)
    ours = initial.data.get("parameters") or {}
    known = {} if theirs is None else theirs.data.get("parameters") or {}
    if theirs is None or not ours or not known:
        text = f"no digests of rank {rank} and of another group after step {step} to compare"
        collector.unknown(expected, text, case.line, initial.source, data=about(rank, step=_as_step(step) or None))
        return False
    names = sorted(name for name in {*ours, *known} if ours.get(name) != known.get(name))
    if names:
        text = (
            f"rank {rank} went on after step {step} with another state than rank {theirs.rank}: {len(names)} of "
            f"{len({*ours, *known})} differ: {text_list(names)}"
        )
        data = about(
            rank,
            step=_as_step(step),
            parameters=names,
            compared=len({*ours, *known}),
            quantity=REPLICA,
            expected=known.get(names[0]),
            seen=ours.get(names[0]),
        )
        collector.fail(expected, text, case.line, initial.source, theirs.source, data=data)
    return not names


def _since_back(case: Case, rank: int) -> list[Event]:
    """Return the votes of a group since it is back: those of a stopped group since it was continued."""
    healed = [event for fault in case.window.faults for event in case.history.select("fault.healed", fault=fault.id)]
    back = 0 if rank in case.window.restarted else min((event.mono for event in healed), default=0)
    return [vote for vote in _of(case, VOTE, rank) if vote.mono >= back]


def _of(case: Case, name: str, rank: int) -> list[Event]:
    return case.window.of(case.history.select(name, attempt=TRAIN, rank=rank))


def _step(vote: Event) -> int | None:
    step = vote.data.get("step")
    return step if isinstance(step, int) else None


def _as_step(step: object) -> int:
    return step if isinstance(step, int) else -1
