"""Part of check ``mechanism``: the process that torchrun calls the root cause, beside the process that was hit.

torchrun names the first failure that it notices, which may be a process that it has itself ended (F-20). A wrong name
is no failure of the job, and breaks no rule unless the scenario asks for the right name (``expect.root_cause``):
otherwise the statement tells a reader whom to believe.
"""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, node_of
from chaos.evidence.launcher.named_cause import Comparison, compare, named_failures
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.mechanisms.case import Case


def judge_named(case: Case, old: dict[int, Event]) -> None:
    """Judge or state the cause that torchrun names for this restart.

    Where its log or the history leaves it open, it is unknown if the scenario asks for it, and not stated otherwise.
    """
    number, demanded = case.window.number, case.plan.response.root_cause is not None
    comparison = _comparison(case, old)
    where = (case.line, *comparison.where)
    if not demanded:
        if comparison.cause != "unknown":
            expected = f"the root cause that torchrun names in recovery {number} is compared with the fault"
            case.collector.settle(expected, comparison.reason, *where)
        return
    expected = f"torchrun names the process that was hit first as the root cause of recovery {number}"
    if comparison.cause == "unknown":
        case.collector.unknown(expected, comparison.reason, *where, data=about(case.window.hit))
    elif comparison.cause != "hit":
        case.collector.fail(expected, comparison.reason, *where, data=about(case.window.hit))
    case.collector.settle(expected, comparison.reason, *where)


def _comparison(case: Case, old: dict[int, Event]) -> Comparison:
    hits = case.window.of(case.history.select("fault.injecting", attempt=TRAIN))
    struck = {event.rank for event in hits}
    nodes = {node_of(event) for rank, event in old.items() if rank in struck}
    if len(nodes) != 1:  # each torchrun knows the ranks of its own node only
        return Comparison("unknown", f"the processes that were hit ran on {len(nodes)} nodes")
    (node,) = nodes
    processes = {event.pid for event in old.values() if node_of(event) == node}
    events = case.artifacts.torchrun_events(TRAIN, node)
    named = (failure for failure in named_failures(events) if failure.pid in processes)
    exits = [event for event in case.history.select("rank.exit", attempt=TRAIN) if node_of(event) == node]
    return compare(next(named, None), hits, exits)
