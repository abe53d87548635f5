"""Check ``run``: the harness itself came to its end, and the job kept to the deadlines of its waits."""

from __future__ import annotations

from chaos.checks.run.busy_machine import MOST, STARVED, CpuStarvation, cpu_starvation
from chaos.checks.run.events import CHANGED, PORT_TAKEN
from chaos.checks.run.stacks import stacks_at
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TEARDOWN
from chaos.evidence.fields import number
from chaos.evidence.finding import Finding
from chaos.evidence.raised import Raised, raised
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.stack_words import in_words, odd_ranks, places
from chaos.plan.model import Plan

NAME = "run"

STOPPED = "harness.stopped"
"""Recorded when the harness came seconds late to its clock, and neither ran nor waited for a processor."""

_PATIENCE = 10.0
"""Seconds without the harness after which a component may give up: a collective behind a held rank."""

LOW = "disk.low"
"""Recorded when the disk of the run was almost full."""


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge the end of the run and every deadline that ran out."""
    collector = Collector(NAME)
    _judge_end(history, artifacts, collector)
    _judge_watch(history, collector)
    for event in history.select("deadline.expired"):
        _judge_deadline(plan, history, event, collector)
    collector.settle("no deadline runs out", "none did")
    return collector.findings()


def _judge_end(history: History, artifacts: Artifacts, collector: Collector) -> None:
    expected = "the harness runs to its end"
    ends = history.select("run.end")
    if not ends:
        collector.unknown(expected, "the history has no run.end: the harness was killed or is still running")
    for end in ends:
        if not isinstance(end.data.get("interrupted"), bool) or "error" not in end.data:
            collector.unknown(expected, "its run.end does not say whether it was interrupted or failed", end.source)
        if end.data.get("interrupted"):
            collector.unknown(expected, "the run was interrupted", end.source)
        if end.data.get("error"):
            _judge_error(history, artifacts, end, collector, expected)
    collector.settle(expected, "it did", *(end.source for end in ends))


def _judge_watch(history: History, collector: Collector) -> None:
    """Judge the harness's own watch: a stopped harness lets ranks wait, sees evidence late and lets deadlines pass."""
    expected = "the harness is never stopped while the job runs"
    for event in history.select(STOPPED):
        observation = f"it was stopped for {event.data.get('seconds')} s (SIGSTOP, or the machine was frozen)"
        collector.unknown(
            expected,
            f"{observation}: no time or deadline of attempt {event.attempt} says anything about the job",
            event.source,
        )
    starved = history.select(STARVED)
    for event in starved:
        seconds = number(event.data, "seconds")
        if seconds is None or seconds >= _PATIENCE:
            observation = (
                f"it had no processor for {event.data.get('seconds')} s: processes that wait for the harness may have "
                "given up meanwhile"
            )
            collector.unknown(expected, observation, event.source)
    total = sum(number(event.data, "seconds") or 0.0 for event in starved)
    observation = f"it was not; the machine gave it no processor for {total:.3f} s in all" if starved else "it was not"
    collector.settle(expected, observation, *(event.source for event in starved[:1]))
    expected = "there is room on the disk of the run"
    for event in history.select(LOW):
        observation = (
            f"{event.data.get('free')} bytes were left: saves and log lines may be missing for that reason alone"
        )
        collector.unknown(expected, observation, event.source)
    collector.settle(expected, "there was")


def _judge_error(history: History, artifacts: Artifacts, end: Event, collector: Collector, expected: str) -> None:
    """Judge an error of the run. A resumed job whose ranks end by themselves is the failure of the job.

    Such an end was seen before the job was given up, for the teardown ends ranks too. Every other error is the
    harness's. This error, too, may be the harness's where it was stopped or had no room: ranks wait for it, and write
    there.
    """
    failed = [event for event in history.select("job.failed") if event.data.get("reason") == end.data["error"]]
    given_up = [event for event in failed if event.attempt == RESUME]
    exits = [
        event
        for event in history.select("rank.exit", attempt=RESUME)
        if event.data.get("code") not in (None, 0) and any(event.mono <= failed.mono for failed in given_up)
    ]
    if exits and not _is_excused(history):
        first = exits[0]
        calls = raised(history, artifacts, first)
        observation = f"rank {first.rank} ended with exit code {first.data['code']}: {end.data['error']}{calls.text}"
        collector.fail(
            "the resumed job runs",
            observation,
            *calls.where,
            first.source,
            end.source,
            data=about(first.rank, pids=first.pid, quantity="exit status", seen=first.data["code"]),
        )
    else:
        cause = "the job could not go on" if failed else "the harness failed"
        if any(event.data.get("reason") == end.data["error"] for event in history.select(CHANGED)):
            expected, cause = "the inputs of the job do not change during the run", "an input was changed"
        if any(event.data.get("reason") == end.data["error"] for event in history.select(PORT_TAKEN)):
            expected, cause = "no other process takes the ports that the harness chooses", "the job could not start"
        if any(event.data.get("reason") == end.data["error"] for event in history.select("baseline.failed")):
            cause = "no fault was made, because the job does not train to its end without one"
        calls = _first_raised(history, artifacts, failed)
        collector.unknown(expected, f"{cause}: {end.data['error']}{calls.text}", *calls.where, end.source)


def _first_raised(history: History, artifacts: Artifacts, failed: list[Event]) -> Raised:
    """Return the exception of the first rank that had ended when the job was given up; empty without one."""
    for given_up in failed[:1]:
        exits = [
            event
            for event in history.select("rank.exit", attempt=given_up.attempt)
            if event.mono <= given_up.mono and event.data.get("code") not in (None, 0)
        ]
        if exits:
            return raised(history, artifacts, min(exits, key=lambda event: event.mono))
    return Raised()


def _is_excused(history: History) -> bool:
    """Return whether an incident of the harness may have harmed the job."""
    return bool(history.select(STOPPED) or history.select(LOW))


def _judge_deadline(plan: Plan, history: History, event: Event, collector: Collector) -> None:
    """Judge the cause of an expired deadline.

    Once a fault has landed, ending (``end``) and coming back (``start`` of the resume) are up to the system under test,
    so an expired deadline there is its failure. Before that, and for waits that depend on the harness or on the speed
    of the machine as a whole (``run``), nothing can be said; nor where the harness was stopped itself or had no room,
    or where the machine kept the job waiting for most of the time.
    """
    name = event.data.get("name")
    if name == TEARDOWN:
        return
    limit = event.data.get("limit") or f"{event.data.get('seconds')} s"
    expected = f"deadline {name} ({limit}) is kept"
    stacks, without = stacks_at(history, event)
    observation = f"it ran out: {event.data.get('detail')}{in_words(stacks, without)}"
    odd = odd_ranks(stacks) or None
    data = about(odd, phase=str(name), quantity="deadline", expected=event.data.get("seconds"), unit="s")
    where = (event.source, *places(stacks, event.attempt))
    hit = not _is_excused(history) and any(landing.mono <= event.mono for landing in history.select("fault.landed"))
    if hit and (name == "end" or (name == "start" and event.attempt == RESUME)):
        waited = _waited(plan, history, event)
        if waited is not None and waited.share >= MOST:
            excused = f"it ran out: {event.data.get('detail')}, but {waited}{in_words(stacks, without)}"
            collector.unknown(expected, excused, event.source, waited.where, *where[1:], data=data)
        else:
            collector.fail(expected, observation, *where, data=data)
    else:
        collector.unknown(expected, observation, *where, data=data)


def _waited(plan: Plan, history: History, expired: Event) -> CpuStarvation | None:
    """Return the waiting within the time of the deadline."""
    seconds = number(expired.data, "seconds")
    return None if seconds is None else cpu_starvation(plan, history, expired.mono - round(seconds * 1e9), expired.mono)
