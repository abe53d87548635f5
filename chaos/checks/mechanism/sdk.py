"""Whether every rank has imported the SDK that the report names: the vendor's MindIO TFT, or the stand-in for it.

Part of the check ``mechanism``: the SDK in the report is the SDK that acted.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, places, ranks_text
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import NEEDS

IMPORTED = "sdk.imported"
"""Recorded by the agent of a rank when ``mindio_ttp.framework_ttp`` has been imported, with its ``file``."""

SDK_NAMES = {"standin": "the stand-in", "vendor": "the vendor's"}

_STANDIN = ("chaos", "rehearsal", "sdk", "mindio_ttp")
"""The end of the stand-in's directory, on every machine."""

Process = tuple[str | None, int | None, int | None]
"""Attempt, rank and process id."""


def judge_sdk(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge every import of the SDK; a job with mechanisms that need no SDK is not judged."""
    if not any(mechanism in NEEDS["MindIO"] for mechanism in plan.fault_tolerance.protection):
        return
    start = history.first("run.start")
    named = start.data.get("sdk") if start is not None else None
    if named not in SDK_NAMES:
        expected = "every rank uses the SDK that the report names"
        collector.unknown(expected, "the run has not recorded which SDK it used", *places([start] if start else []))
        return
    expected = f"every rank uses {SDK_NAMES[named]}, as the report says"
    imports = {_process(event): event for event in history.select(IMPORTED)}
    for event in imports.values():
        file = event.data.get("file")
        if not isinstance(file, str):
            collector.unknown(
                expected,
                f"rank {event.rank} has not recorded the path of the SDK that it imported",
                event.source,
                data=about(event.rank),
            )
        elif _sdk_of(file) != named:
            collector.fail(
                expected,
                f"rank {event.rank} has imported {artifacts.recorded(file)}",
                event.source,
                data=about(event.rank),
            )
    silent = [event for process, event in _trained(plan, history).items() if process not in imports]
    for attempt in (TRAIN, RESUME):
        events = [event for event in silent if event.attempt == attempt]
        if events:
            who = ranks_text(sorted({event.rank for event in events if event.rank is not None}))
            collector.unknown(
                expected, f"no import of the SDK by {who} is recorded in attempt {attempt}", *places(events[:5])
            )
    if not imports:
        collector.unknown(expected, "no rank has recorded an import of the SDK")
    collector.settle(expected, f"in {len(imports)} processes", *places(list(imports.values())[:5]))


def _trained(plan: Plan, history: History) -> dict[Process, Event]:
    """Return the processes that have trained, which comes after the import, with the place of the evidence.

    Where agents have recorded no steps, these are all processes that began in a launch that is to train, without ranks
    that a fault hits, which may have ended before.
    """
    steps = history.select("step.begin")
    if steps:
        return {_process(event): event for event in reversed(steps)}
    hit = {rank for fault in plan.faults for rank in fault.ranks}
    return {
        _process(event): event
        for event in history.select("agent.start")
        if event.rank is not None
        and ((event.attempt == TRAIN and event.rank not in hit) or (event.attempt == RESUME and plan.resume.resumes))
    }


def _process(event: Event) -> Process:
    return event.attempt, event.rank, event.pid


def _sdk_of(file: str) -> str:
    above = PurePosixPath(file).parent  # of a module; a package has a directory of its own in the SDK's
    return "standin" if any(place.parts[-len(_STANDIN) :] == _STANDIN for place in (above, above.parent)) else "vendor"
