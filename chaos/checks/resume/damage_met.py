"""Part of check ``resume``: a damaged checkpoint lay in its place when a script of the user's own was started again.

A script that goes on from an earlier checkpoint has shown nothing if the damaged file was saved anew, or removed,
before it could look at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import DAMAGE_MET
from chaos.evidence.checkpoints.damage import loads_made
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, text_list
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

EXPECTED = "the damage was in its place when the job was started again"


def judge_met(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge what lay in place of each damaged file. Says nothing where no script of the user's own decides."""
    if plan.resume.restore is None or not plan.resume.restore.stated:
        return
    hit: list[str] = []
    sources: list[str] = []
    for rank, file, landing, shown in _damage(plan, history):
        data = about(rank, file=file, fault=str(landing.data.get("fault")))
        met = history.last(DAMAGE_MET, attempt=RESUME, rank=rank, fault=landing.data.get("fault"), file=file)
        if met is None:
            collector.unknown(EXPECTED, f"nobody has looked for rank {rank}'s file {file}", landing.source, data=data)
        elif met.data.get("content") is None or met.data["content"] != shown.get("after"):
            why = met.data.get("problem") or f"rank {rank}'s file {file} was another than the fault had left"
            collector.unknown(EXPECTED, str(why), met.source, landing.source, data=data)
        hit.append(file)
        sources += [] if met is None else [met.source]
    if not hit:
        collector.unknown(EXPECTED, "no fault is recorded to have damaged a checkpoint")
    loads = loads_made(history)
    loaded = {artifacts.recorded(str(load.data.get("path"))) for load in loads}
    files = text_list(sorted(loaded)) or "no file"
    places = [*sources, *(load.source for load in loads)]
    collector.settle(EXPECTED, f"{text_list(hit)} was, and the ranks have loaded {files}", *places[:5])


def _damage(plan: Plan, history: History) -> Iterator[tuple[int, str, Event, dict[str, Any]]]:
    """Yield rank, file, landing and evidence of each damaged or renamed file."""
    of_files = {fault.id for fault in plan.faults if fault.effect.changes_file}
    for landing in history.select("fault.landed"):
        for entry in landing.data.get("evidence") or []:
            if landing.data.get("fault") in of_files and isinstance(entry, dict):
                yield int(entry.get("rank", -1)), str(entry.get("file")), landing, entry
