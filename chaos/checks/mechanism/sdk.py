"""Whether every rank has imported the SDK that the report names: the vendor's MindIO TFT, or the stand-in for it.

Part of the check ``mechanism``: what acted is what the report says has acted.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, places, ranks_text
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import NEEDS

IMPORTED = "sdk.imported"
"""Recorded by the agent of a rank when ``mindio_ttp.framework_ttp`` has been imported, with its ``file``."""

WHOSE = {"standin": "the stand-in", "vendor": "the vendor's"}

_STANDIN = ("chaos", "rehearsal", "sdk", "mindio_ttp")
"""The end of the directory that the stand-in is in, on every machine."""

Process = tuple[str | None, int | None, int | None]
"""Attempt, rank and process id."""


def judge_sdk(plan: Plan, history: History, artifacts: Artifacts, found: Collector) -> None:
    """Judge every import of the SDK; a job whose mechanisms need none is not judged."""
    if not any(one in NEEDS["MindIO"] for one in plan.fault_tolerance.protection):
        return
    start = history.first("run.start")
    named = start.data.get("sdk") if start is not None else None
    if named not in WHOSE:
        expected = "the SDK of every rank is the one that the report names"
        found.unknown(
            expected, "the run has not recorded with whose SDK it was made", *places([start] if start else [])
        )
        return
    expected = f"the SDK of every rank is {WHOSE[named]}, as the report says"
    imports = {_process(one): one for one in history.select(IMPORTED)}
    for one in imports.values():
        file = one.data.get("file")
        if not isinstance(file, str):
            found.unknown(expected, f"rank {one.rank} has not recorded from where it has it", one.source)
        elif _whose(file) != named:
            found.fail(expected, f"rank {one.rank} has imported {artifacts.recorded(file)}", one.source)
    silent = [one for process, one in _trained(plan, history).items() if process not in imports]
    for attempt in (TRAIN, RESUME):
        own = [one for one in silent if one.attempt == attempt]
        if own:
            who = ranks_text(sorted({one.rank for one in own if one.rank is not None}))
            found.unknown(expected, f"no import of it is recorded of {who} in attempt {attempt}", *places(own[:5]))
    if not imports:
        found.unknown(expected, "no rank has recorded an import of it")
    found.settle(expected, f"it is, in {len(imports)} processes", *places(list(imports.values())[:5]))


def _trained(plan: Plan, history: History) -> dict[Process, Event]:
    """The processes that have trained, which comes after the import, with the place where that is seen.

    Where agents have recorded no steps, all processes that began in a launch that is to train; but for a rank that a
    fault hits, which may have ended before.
    """
    steps = history.select("step.begin")
    if steps:
        return {_process(one): one for one in reversed(steps)}
    hit = {rank for fault in plan.faults for rank in fault.ranks}
    return {
        _process(one): one
        for one in history.select("agent.start")
        if one.rank is not None
        and ((one.attempt == TRAIN and one.rank not in hit) or (one.attempt == RESUME and plan.resume.resumes))
    }


def _process(one: Event) -> Process:
    return one.attempt, one.rank, one.pid


def _whose(file: str) -> str:
    return "standin" if PurePosixPath(file).parent.parts[-len(_STANDIN) :] == _STANDIN else "vendor"
