"""The ends of the phases of an end-of-life checkpoint, and of the job's start after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from chaos.evidence.facts import RESUME, TRAIN, by_rank, step_of, steps
from chaos.evidence.injection.on_node import is_silenced
from chaos.evidence.replica_loads import loaded_by_replica
from chaos.evidence.timestamp import Timestamp, latest
from chaos.mechanisms.markers import Launch, Marker, MarkerError, first_of, last_of_ranks, marked, noticed


def _save_began(launch: Launch, after: int) -> Timestamp:
    saves = launch.history.select("handler.enter", attempt=TRAIN, name="save_ckpt")
    saves += launch.history.select("checkpoint.begin", attempt=TRAIN, kind="end-of-life")
    if saves:
        return first_of(sorted(saves, key=lambda event: event.mono), after, "the beginning of a save after the fault")
    return launch.logged(lambda event: event.kind == "ttp.dump_begin", "the beginning of a save", after)


def _renamed(launch: Launch, after: int) -> Timestamp:
    renames = launch.history.select("handler.exit", attempt=TRAIN, name="rename")
    if renames:
        return first_of(renames, after, "the end of the rename after the fault")
    return launch.logged(lambda event: event.kind == "ttp.renamed", "the end of the rename", after)


def _exited(launch: Launch, after: int) -> Timestamp:
    # A suspended rank ends with the teardown, which is no part of the recovery.
    suspended = {rank for fault in launch.plan.faults if is_silenced(fault) for rank in fault.ranks}
    exits = [event for event in launch.history.select("rank.exit", attempt=TRAIN) if event.rank not in suspended]
    exited, required = {event.rank for event in exits}, set(range(launch.plan.layout.ranks)) - suspended
    if not exits or not required <= exited:
        raise MarkerError(f"{len(exited & required)} of {len(required)} exits are recorded")
    return latest(map(Timestamp.of, exits))


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
    ends = launch.history.select("load.end", attempt=RESUME)
    given = loaded_by_replica(launch.plan, [*launch.history.select("load.begin", attempt=RESUME), *ends])
    last = {event.rank for event in ends} | set(given)
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


_MARKERS: Mapping[str, Marker] = MappingProxyType(
    {
        "detection": noticed,
        "stop": _save_began,
        "save": _renamed,
        "exit": _exited,
        "relaunch": _relaunched,
        "load": _loaded,
        "compile": _first_begun,
        "first step": _first_ended,
        "caught up": _caught_up,
    }
)


def phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase, or why it is not known."""
    return marked(_MARKERS, launch, after)
