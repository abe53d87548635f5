"""The outcome of a fault in an attached job: in each chosen rank, and as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from chaos.machine.running.running import JobProcess

Outcome = Literal["landed", "not landed", "unknown"]


@dataclass(frozen=True)
class Hit:
    """The outcome of the fault in one rank. ``evidence`` proves that it landed, ``why`` gives the reason otherwise."""

    process: JobProcess
    outcome: Outcome
    evidence: dict[str, Any] | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**plain(self.process), "outcome": self.outcome, "evidence": self.evidence, "why": self.why}


@dataclass(frozen=True)
class Injected:
    """An injection that has ended. ``undone`` is None where there was nothing to undo.

    ``left`` lists the steps that could not be undone, with the reasons. ``interrupted``: the injection ended before its
    time was over.
    """

    run_dir: Path
    kind: str
    hits: tuple[Hit, ...]
    undone: bool | None
    left: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def outcome(self) -> Outcome:
        """ "landed" only when the fault landed in every chosen rank."""
        outcomes = {hit.outcome for hit in self.hits}
        return "landed" if outcomes == {"landed"} else "unknown" if "unknown" in outcomes else "not landed"

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "run": self.run_dir.name,
            "directory": str(self.run_dir),
            "fault": self.kind,
            "outcome": self.outcome,
            "undone": self.undone,
            "left": list(self.left),
            "interrupted": self.interrupted,
            "hits": [hit.to_json() for hit in self.hits],
        }


def plain(process: JobProcess) -> dict[str, Any]:
    """Return a process as data.

    ``start_time`` is in clock ticks since boot: with the PID it identifies the process for good.
    """
    container = process.container
    return {
        "role": process.role,
        "rank": process.rank,
        "pid": process.pid,
        "start_time": process.identity.start_time,
        "command": list(process.cmdline),
        "container": None if container is None else {"id": container.id, "pid": container.pid},
    }
