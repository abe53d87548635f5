"""Part of check ``mechanism``: every error that ends a rank comes from a planned fault, and the first error counts.

An error of a survivor because of a fault comes from the framework or from the system: a collective that was ended, a
connection that is gone. An error of another class (``AttributeError``, ``ValueError``) is the program's own: it
belongs to the job, or to a handler of the mechanism that had something else to report first.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.checks.mechanism.logged_errors import logged_errors
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, error_text, places
from chaos.evidence.raised import raised
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.error_classes import OF_ANYBODY, OF_FAULTS
from chaos.plan.model import Plan

EXPECTED = "every error that ends a rank comes from a planned fault"

UNCAUGHT = "error.uncaught"
REPORTED = "error.reported"
GIVEN_UP = "RS_UNKNOWN"
"""The report of a rank to the SDK about an error without a repair: the SDK then ends it."""


def judge_first_errors(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the record of each rank of the faulted launch about the error that ended it. Says nothing without one.

    Without a record of its agent, the traceback at the end of its log counts, and its exit status confirms it.
    """
    recorded = list(_ending(history))
    logged = list(logged_errors(plan, history, artifacts, {(event.rank, event.pid) for event in recorded}))
    errors = [*recorded, *logged]
    for event in errors:
        _judge(plan, history, artifacts, event, collector)
    if errors:
        collector.settle(EXPECTED, f"{len(errors)} errors, each of a fault", *places(errors[:3]))


def _ending(history: History) -> Iterator[Event]:
    """Yield the error that ended each process, as its agent has recorded it; the first report where there are two."""
    yielded = set()
    reported = [event for event in history.select(REPORTED, attempt=TRAIN) if event.data.get("name") == GIVEN_UP]
    for event in (*reported, *history.select(UNCAUGHT, attempt=TRAIN)):
        if "error" in event.data and (event.rank, event.pid) not in yielded:
            yielded.add((event.rank, event.pid))
            yield event


def _judge(plan: Plan, history: History, artifacts: Artifacts, event: Event, collector: Collector) -> None:
    observation = f"rank {event.rank} ended by {error_text(event)}"
    calls = raised(history, artifacts, event, str(event.data.get("error")))
    where = dict.fromkeys((*calls.where, event.source))
    made = history.select("fault.injecting", attempt=TRAIN)
    acts = [act for act in made if act.mono <= event.mono + event.uncertainty(act)]
    was_hit = any((act.rank, act.pid) == (event.rank, event.pid) for act in acts)
    base, first = str(event.data.get("base")), str(event.data.get("first_base", ""))
    second = bool(first) and event.data.get("wrapped") is not True
    if not acts:
        text = f"{observation}, before any fault was made{calls.text}"
        collector.fail(EXPECTED, text, *where, data=about(event.rank))
    elif was_hit and not second:
        return  # the fault itself, or its consequence in the rank that it hits
    elif was_hit and base == "RuntimeError" and plan.response.mechanism not in (None, "none"):
        collector.unknown(
            EXPECTED,
            f"{observation}: the mechanism that answers the first error may have raised it{calls.text}",
            *where,
            data=about(event.rank),
        )
    elif base in OF_FAULTS and (was_hit or not first or first in OF_FAULTS):
        return
    elif base in OF_FAULTS or (base in OF_ANYBODY and first in OF_FAULTS | {""}):
        text = f"{observation}: whether a fault caused it is unknown{calls.text}"
        collector.unknown(EXPECTED, text, *where, data=about(event.rank))
    else:
        collector.fail(EXPECTED, f"{observation}{calls.text}", *where, data=about(event.rank))
