"""Part of check ``resume``: a damaged checkpoint lay in its place when a script of the user's own was started again.

The job is started again after its end, or its launcher has started all ranks again within the launch.

A script that goes on from an earlier checkpoint has shown nothing if the damaged file was saved anew, or removed,
before it could look at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import DAMAGE_MET
from chaos.evidence.checkpoints.damage import is_damaged, loads_made
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, places, text_list
from chaos.evidence.recovery_windows import Window
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

EXPECTED = "the damage was in its place when the job was started again"
UNDAMAGED = "no rank loads a checkpoint that a fault has damaged"


def judge_met(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge what lay in place of each damaged file. Says nothing where no script of the user's own decides."""
    if plan.resume.restore is None or not plan.resume.restore.stated:
        return
    _judge_place(plan, history, artifacts, history.select(DAMAGE_MET, attempt=RESUME), loads_made(history), collector)


def judge_met_within(
    plan: Plan, history: History, artifacts: Artifacts, windows: Sequence[Window], collector: Collector
) -> None:
    """Judge the same for restarts within the launch, and that no rank has gone on from a damaged file."""
    for window in windows:
        if window.recovery is None or not window.recovery.damaged:
            continue
        loads = _loads_within(plan, history, window)
        met = window.of(history.select(DAMAGE_MET, attempt=TRAIN))
        _judge_place(plan, history, artifacts, met, [load for made in loads.values() for load in made], collector)
        for rank, made in loads.items():
            paths = [str(load.data.get("path")) for load in made]
            if paths and all(is_damaged(history, path) for path in paths):
                where = artifacts.recorded(paths[0])
                observation = f"rank {rank} loaded {where}, which a fault had damaged"
                collector.fail(UNDAMAGED, observation, *places(made[:1]), data=about(rank, file=where))
        number = sum(map(len, loads.values()))
        collector.settle(UNDAMAGED, f"{number} loads, of other files")


def _loads_within(plan: Plan, history: History, window: Window) -> dict[int, list[Event]]:
    """Return the loads of each rank's new processes before their first step that came to their end."""
    begun = history.select("step.begin", attempt=TRAIN)
    ends = window.of(history.select("load.end", attempt=TRAIN))
    first = {event.pid: event.mono for event in reversed(begun)}
    ended = [end for end in ends if end.pid not in first or end.mono < first[end.pid]]
    return {rank: [end for end in ended if end.rank == rank] for rank in range(plan.layout.ranks)}


def _judge_place(
    plan: Plan,
    history: History,
    artifacts: Artifacts,
    looks: Sequence[Event],
    loads: Sequence[Event],
    collector: Collector,
) -> None:
    """Judge that each look found the content that the fault had left; ``loads`` were made afterwards."""
    hit: list[str] = []
    sources: list[str] = []
    for rank, file, landing, shown in _damage(plan, history):
        data = about(rank, file=file, fault=str(landing.data.get("fault")))
        met = _last_of(looks, rank, landing.data.get("fault"), file)
        if met is None:
            collector.unknown(EXPECTED, f"nobody has looked for rank {rank}'s file {file}", landing.source, data=data)
        elif met.data.get("content") is None or met.data["content"] != shown.get("after"):
            why = met.data.get("problem") or f"rank {rank}'s file {file} was another than the fault had left"
            collector.unknown(EXPECTED, str(why), met.source, landing.source, data=data)
        hit.append(file)
        sources += [] if met is None else [met.source]
    if not hit:
        collector.unknown(EXPECTED, "no fault is recorded to have damaged a checkpoint")
    loaded = {artifacts.recorded(str(load.data.get("path"))) for load in loads}
    files = text_list(sorted(loaded)) or "no file"
    places = [*sources, *(load.source for load in loads)]
    collector.settle(EXPECTED, f"{text_list(hit)} was, and the ranks have loaded {files}", *places[:5])


def _last_of(looks: Sequence[Event], rank: int, fault: object, file: str) -> Event | None:
    return next(
        (
            look
            for look in reversed(looks)
            if look.rank == rank and look.data.get("fault") == fault and look.data.get("file") == file
        ),
        None,
    )


def _damage(plan: Plan, history: History) -> Iterator[tuple[int, str, Event, dict[str, Any]]]:
    """Yield rank, file, landing and evidence of each damaged or renamed file."""
    of_files = {fault.id for fault in plan.faults if fault.effect.changes_file}
    for landing in history.select("fault.landed"):
        for entry in landing.data.get("evidence") or []:
            if landing.data.get("fault") in of_files and isinstance(entry, dict):
                yield int(entry.get("rank", -1)), str(entry.get("file")), landing, entry
