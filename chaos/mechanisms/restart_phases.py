"""The ends of the phases of a job's new start, whatever ended the job: a mechanism that saves, or none at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from chaos.evidence.facts import RESUME, TRAIN, by_rank, step_of, steps
from chaos.evidence.injection.on_node import is_silenced
from chaos.evidence.replica_loads import loaded_by_replica
from chaos.evidence.timestamp import Timestamp, earliest, latest
from chaos.mechanisms.markers import Launch, Marker, MarkerError, last_of_ranks, marked

_REPORTS = ("error.uncaught", "error.reported")
"""The events by which a rank itself says that it has failed."""


def _detected(launch: Launch, after: int) -> Timestamp:
    """Return the moment when the fault is first noticed outside the ranks that it hits.

    A rank that no fault hits fails or ends, or the launcher collects the exit of any rank.
    """
    history = launch.history
    hit = {rank for fault in launch.plan.faults if fault.effect.stops_training for rank in fault.ranks}
    signs = [event for name in _REPORTS for event in history.select(name, attempt=TRAIN) if event.rank not in hit]
    signs += [
        event
        for event in history.select("rank.exit", attempt=TRAIN)
        if event.rank not in hit and event.data.get("code") != 0
    ]
    signs += history.select("child.exit", attempt=TRAIN)
    later = [event for event in signs if event.mono >= after]
    if not later and len(hit) >= launch.plan.layout.ranks:
        raise MarkerError("every rank was hit, and the launcher recorded no exit, so nothing shows when it was noticed")
    if not later:
        raise MarkerError("no rank that the fault did not hit has failed, and the launcher recorded no exit")
    noticed = earliest(map(Timestamp.of, later))
    _refuse_ended_by_harness(launch, after, noticed)
    return noticed


def _refuse_ended_by_harness(launch: Launch, after: int, moment: Timestamp) -> None:
    """Raise MarkerError where the harness had come to a deadline before: then it has ended the job, not the fault."""
    for expired in launch.history.select("deadline.expired", attempt=TRAIN):
        if after <= expired.mono <= moment.mono:
            raise MarkerError(f"the harness ended the job at the deadline {expired.data.get('name')}")


def _exited(launch: Launch, after: int) -> Timestamp:
    # A suspended rank ends with the teardown, which is no part of the recovery.
    suspended = {rank for fault in launch.plan.faults if is_silenced(fault) for rank in fault.ranks}
    exits = [event for event in launch.history.select("rank.exit", attempt=TRAIN) if event.rank not in suspended]
    exited, required = {event.rank for event in exits}, set(range(launch.plan.layout.ranks)) - suspended
    if not exits or not required <= exited:
        raise MarkerError(f"{len(exited & required)} of {len(required)} exits are recorded")
    last = latest(map(Timestamp.of, exits))
    _refuse_ended_by_harness(launch, after, last)
    return last


def _relaunched(launch: Launch, after: int) -> Timestamp:
    """Return the moment when the last rank begins to load: its process runs and the framework is there.

    Without a load it is the moment when the last process runs.
    """
    starts = launch.history.select("agent.start", attempt=RESUME)
    started = last_of_ranks(launch, starts, "the start in attempt resume", launch.plan.layout.ranks)
    loads = launch.history.select("load.begin", attempt=RESUME)
    if len({event.rank for event in loads}) < launch.plan.layout.ranks:
        return started
    return last_of_ranks(launch, loads, "the beginning of the load", launch.plan.layout.ranks)


def _loaded(launch: Launch, after: int) -> Timestamp:
    """Return the moment when the last rank has loaded its state; a file read while it trains does not count."""
    begun = {rank: events[0].mono for rank, events in by_rank(launch.history, "step.begin", RESUME).items()}
    ends = [
        event
        for event in launch.history.select("load.end", attempt=RESUME)
        if event.rank is None or event.mono <= begun.get(event.rank, event.mono)
    ]
    by_replica = loaded_by_replica(launch.plan, [*launch.history.select("load.begin", attempt=RESUME), *ends])
    last = {event.rank for event in ends} | set(by_replica)
    if len(last) < launch.plan.layout.ranks:
        raise MarkerError(f"the end of the load is recorded for {len(last)} of {launch.plan.layout.ranks} ranks")
    return latest(map(Timestamp.of, ends))


def _first_begun(launch: Launch, after: int) -> Timestamp:
    """Return the moment when the last rank begins its first step.

    Where graphs are compiled in the step, it is the moment when the last graph is ready.
    """
    begins = launch.history.select("step.begin", attempt=RESUME)
    begun = last_of_ranks(launch, begins, "the first step after the resume", launch.plan.layout.ranks)
    ends = {rank: events[0].mono for rank, events in by_rank(launch.history, "step.end", RESUME).items()}
    ready = [
        event
        for rank, events in by_rank(launch.history, "graph.compiled", RESUME).items()
        for event in events
        if event.mono <= ends.get(rank, 0)
    ]
    return latest((begun, *map(Timestamp.of, ready)))


def _first_ended(launch: Launch, after: int) -> Timestamp:
    ends = launch.history.select("step.end", attempt=RESUME)
    return last_of_ranks(launch, ends, "the end of the first step after the resume", launch.plan.layout.ranks)


def _caught_up(launch: Launch, after: int) -> Timestamp:
    """Return the moment when every rank has ended the highest interrupted step: nothing is lost any more."""
    begun = [max(begins) for begins in steps(launch.history, "step.begin", TRAIN).values() if begins]
    if not begun:
        raise MarkerError("no step of the faulted launch is recorded")
    goal = max(begun)
    first = _first_ended(launch, after)
    ends = [event for event in launch.history.select("step.end", attempt=RESUME) if step_of(event) >= goal]
    reached = last_of_ranks(launch, ends, f"step {goal}, which the fault interrupted,", launch.plan.layout.ranks)
    return latest((first, reached))


AFTER_EXIT: Mapping[str, Marker] = MappingProxyType(
    {
        "exit": _exited,
        "relaunch": _relaunched,
        "load": _loaded,
        "compile": _first_begun,
        "first step": _first_ended,
        "caught up": _caught_up,
    }
)
"""The ends of the phases from the end of the launch on."""

_RESTART: Mapping[str, Marker] = MappingProxyType({"detection": _detected, **AFTER_EXIT})


def restart_phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase of a restart for which no mechanism calls, or why it is not known."""
    return marked(_RESTART, launch, after)
