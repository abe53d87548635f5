"""Part of check ``mechanism``: the process that torchrun calls the root cause, beside the process that was hit.

torchrun names the first failure that it notices, which may be a process that it has itself ended. A wrong name is no
failure of the job, and no rule is broken by it: the statement tells a reader whom to believe.
"""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, node_of
from chaos.evidence.launcher.named_cause import compare, named_failures
from chaos.history.event import Event
from chaos.mechanisms.case import Case


def note_named(case: Case, old: dict[int, Event]) -> None:
    """State the cause that torchrun names for this restart; nothing where its log or the history leaves it open."""
    hits = case.window.of(case.history.select("fault.injecting", attempt=TRAIN))
    struck = {event.rank for event in hits}
    nodes = {node_of(event) for rank, event in old.items() if rank in struck}
    if len(nodes) != 1:
        return  # each torchrun knows the ranks of its own node only
    (node,) = nodes
    processes = {event.pid for event in old.values() if node_of(event) == node}
    events = case.artifacts.torchrun_events(TRAIN, node)
    named = (failure for failure in named_failures(events) if failure.pid in processes)
    exits = [event for event in case.history.select("rank.exit", attempt=TRAIN) if node_of(event) == node]
    comparison = compare(next(named, None), hits, exits)
    if comparison.cause != "unknown":
        expected = f"the root cause that torchrun names in recovery {case.window.number} is compared with the fault"
        case.collector.settle(expected, comparison.reason, case.line, *comparison.where)
