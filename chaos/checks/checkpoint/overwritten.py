"""Part of check ``checkpoint``: no step is saved over the file of another step.

A resume by name goes by names that count epochs and steps, and a job may have to go back to an earlier step. A name
that counts nothing (``latest.ckpt``) is there to be saved anew, and so is a name that the fault-free run uses twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.damage import ends_with
from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.mindformers_layout import ITERATION

EXPECTED = "no step is saved over the file of another one"

_COUNTED = re.compile(r".+-\d+_\d+(?:\.ckpt|\.safetensors)?")
"""MindSpore's and MindFormers' names, PREFIX-EPOCH_STEP; the format may be left to MindSpore."""


def judge_overwritten(history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the names of all periodic saves. Says nothing where none counts its step."""
    again = [pair for pair in _again(history, artifacts) if not _was_taken(history, *pair[1:])]
    baseline = (
        artifacts.baseline if again else None
    )  # the baseline only excuses: it is asked where something needs an excuse
    usual = set() if baseline is None else {name for name, _, _ in _again(baseline, artifacts)}
    for name, before, after in again:
        if name not in usual:
            observation = (
                f"rank {after.rank} has saved step {after.data['step']} over its file of step {before.data['step']}"
            )
            collector.fail(
                EXPECTED,
                f"{observation}: {name}",
                after.source,
                before.source,
                data=about(after.rank, step=after.data["step"], file=name),
            )
    names = {_name(event, artifacts) for event in _saves(history)}
    if names:
        collector.settle(EXPECTED, f"{len(names)} files, each of one step")


def _again(history: History, artifacts: Artifacts) -> Iterator[tuple[str, Event, Event]]:
    """Yield the name, and both saves, where a name is used for another step than before."""
    last: dict[tuple[int | None, str], Event] = {}
    for save in _saves(history):
        name = _name(save, artifacts)
        before = last.get((save.rank, name))
        if before is not None and before.data["step"] != save.data["step"]:
            yield name, before, save
        last[save.rank, name] = save


def _was_taken(history: History, before: Event, after: Event) -> bool:
    """Return whether a fault had taken the earlier file before the later save, so that nothing was overwritten."""
    landings = [event for event in history.select("fault.landed") if before.mono < event.mono < after.mono]
    path = str(before.data["path"])
    return any(
        ends_with(path, taken)
        for landing in landings
        for entry in landing.data.get("evidence") or []
        if isinstance(entry, dict)
        for taken in _taken(entry)
    )


def _taken(evidence: dict[str, Any]) -> Iterator[str]:
    """Yield the files that a fault took or changed, by its evidence."""
    removed = evidence.get("removed")
    for name in removed if isinstance(removed, list) else ():
        yield f"{evidence.get('directory')}/{name}"
    if isinstance(evidence.get("file"), str):
        yield evidence["file"]


def _saves(history: History) -> Iterator[Event]:
    for event in sorted(history.select("checkpoint.end", kind="periodic"), key=lambda fact: (fact.mono, fact.seq)):
        path = PurePosixPath(str(event.data.get("path")))
        counted = _COUNTED.fullmatch(path.name) or ITERATION.fullmatch(path.parent.name)
        if counted and isinstance(event.data.get("step"), int):
            yield event


def _name(save: Event, artifacts: Artifacts) -> str:
    return artifacts.recorded(str(save.data.get("path")))
