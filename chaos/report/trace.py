"""The timeline of a run as trace events: the JSON form that Perfetto and MindStudio Insight open.

A rank is a process of the trace, with a thread each for its training, for the SDK and for faults; the harness is one
more, with the phases of the recoveries, the states of the SDK's controller and the faults. Times are microseconds. The
form is that of the Trace Event Format (Google, revision of 2016): ``X`` is something that lasts, ``i`` a moment, ``s``
and ``f`` the ends of an arrow, ``b`` and ``e`` the ends of something that lasts beside a thread, ``M`` a name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from chaos.report.page.model import PageData, Process, Row

TraceEvent = dict[str, Any]

TRAINING, SDK, FAULTS = 1, 2, 3
_THREADS = {TRAINING: "training", SDK: "SDK", FAULTS: "faults"}
_HARNESS = 1_000_000
"""The harness's number among the processes of a trace: no job has as many ranks."""
_OF_SDK = ("handler", "stop", "repair", "pause", "sdk")
_OF_FAULTS = ("fault", "held", "error", "exit", "detection")


def trace_of(page: PageData) -> str:
    """Return the trace of a run as JSON text."""
    events = [*_harness(page), *(event for row in page.timeline.rows for event in _rank(row)), *_flows(page)]
    whole = {"traceEvents": [*_nested(events)], "displayTimeUnit": "ms", "otherData": {"run": page.run}}
    return json.dumps(whole, indent=None)


def _harness(page: PageData) -> Iterator[TraceEvent]:
    threads = {TRAINING: "recovery", SDK: "SDK controller", FAULTS: "faults"}
    yield from _names(_HARNESS, "harness", sort=-1, threads=threads)
    for band in page.timeline.phases:
        yield _lasting(_HARNESS, TRAINING, band.name, band.begin, band.end, "phase of the recovery")
    for state in page.timeline.states:
        yield _lasting(_HARNESS, SDK, state.name, state.begin, state.end, state.text)
    for mark in page.timeline.harness:
        yield _moment(_HARNESS, FAULTS, mark.kind, mark.t, mark.text)


def _rank(row: Row) -> Iterator[TraceEvent]:
    label = (
        f"{row.label} (node {row.node})" if row.group is None else f"{row.label} (node {row.node}, group {row.group})"
    )
    yield from _names(row.rank, label, sort=row.rank, threads=_THREADS)
    for process in row.processes:
        yield from _process(row.rank, process)


def _process(rank: int, process: Process) -> Iterator[TraceEvent]:
    life = f"{process.attempt}, process {process.pid}"
    yield _lasting(rank, FAULTS, life, process.begin, process.end, process.exit or "its exit is not recorded")
    for first, last, begin, end in process.steps:
        name = f"step {first}" if first == last else f"steps {first}-{last}"
        yield _lasting(rank, TRAINING, name, begin, end, life)
    for span in process.spans:
        yield _lasting(rank, _thread(span.kind), span.name, span.begin, span.end, span.text)
    for mark in process.marks:
        yield _moment(rank, _thread(mark.kind), mark.kind, mark.t, mark.text)


def _flows(page: PageData) -> Iterator[TraceEvent]:
    """Yield an arrow from each fault to its detection.

    An arrow ends in the slice of its moment: one microsecond before the end of the phase that ends with the detection.
    """
    for number, fault in enumerate(page.timeline.planned, 1):
        if fault.t is None or fault.noticed is None:
            continue
        at = fault.ranks[0] if fault.ranks else _HARNESS
        begin, end = _microseconds(fault.t), _microseconds(fault.noticed)
        common = {"name": "detected", "cat": "fault", "id": number}
        yield {**common, "ph": "s", "pid": at, "tid": FAULTS, "ts": begin}
        yield {**common, "ph": "f", "bp": "e", "pid": _HARNESS, "tid": TRAINING, "ts": max(begin, end - 1)}


def _names(process: int, name: str, *, sort: int, threads: dict[int, str]) -> Iterator[TraceEvent]:
    yield {"name": "process_name", "ph": "M", "pid": process, "args": {"name": name}}
    yield {"name": "process_sort_index", "ph": "M", "pid": process, "args": {"sort_index": sort}}
    for thread, label in threads.items():
        yield {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": label}}


def _thread(kind: str) -> int:
    return SDK if kind in _OF_SDK else FAULTS if kind in _OF_FAULTS else TRAINING


def _nested(events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """Yield the events in order of time. What overlaps another slice of its thread in part is shown beside the thread.

    Slices of a thread must nest: a viewer cuts off the one that does not. A save in the background outlasts its step.
    """
    names: list[TraceEvent] = []
    timed: list[TraceEvent] = []
    for event in events:
        (names if event["ph"] == "M" else timed).append(event)
    yield from names
    open_slices: dict[tuple[int, int], list[int]] = {}
    beside = 0
    for event in sorted(timed, key=lambda event: (event["ts"], -event.get("dur", 0), event["ph"] in "sf")):
        if event["ph"] != "X":
            yield event
            continue
        ends, end = open_slices.setdefault((event["pid"], event["tid"]), []), event["ts"] + event["dur"]
        while ends and ends[-1] <= event["ts"]:
            ends.pop()
        if not ends or end <= ends[-1]:
            ends.append(end)
            yield event
            continue
        beside += 1
        common = {"name": event["name"], "cat": "beside", "id": beside, "pid": event["pid"], "tid": event["tid"]}
        yield {**common, "ph": "b", "ts": event["ts"], "args": event["args"]}
        yield {**common, "ph": "e", "ts": end}


def _lasting(process: int, thread: int, name: str, begin: float, end: float, text: str) -> TraceEvent:
    duration = max(0, _microseconds(end) - _microseconds(begin))
    common = {"name": name, "ph": "X", "pid": process, "tid": thread}
    return {**common, "ts": _microseconds(begin), "dur": duration, "args": {"text": text}}


def _moment(process: int, thread: int, name: str, at: float, text: str) -> TraceEvent:
    common = {"name": name, "ph": "i", "s": "t", "pid": process, "tid": thread}
    return {**common, "ts": _microseconds(at), "args": {"text": text}}


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)
