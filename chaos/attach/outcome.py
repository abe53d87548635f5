"""What came of a fault in an attached job: in each rank that was meant, and as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from chaos.machine.running.running import JobProcess

Outcome = Literal["landed", "not landed", "unknown"]


@dataclass(frozen=True)
class Hit:
    """What came of the fault in one rank. ``evidence`` is the proof that it landed, ``why`` the reason otherwise."""

    process: JobProcess
    outcome: Outcome
    evidence: dict[str, Any] | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**plain(self.process), "outcome": self.outcome, "evidence": self.evidence, "why": self.why}


@dataclass(frozen=True)
class Injected:
    """An injection that has come to its end. ``undone`` is None where there was nothing to undo.

    ``left`` says what could not be undone, with the reason. ``interrupted``: before the time asked for was over.
    """

    run_dir: Path
    kind: str
    hits: tuple[Hit, ...]
    undone: bool | None
    left: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def outcome(self) -> Outcome:
        """ "landed" only when it did in every rank that was meant."""
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
    """A process as data. ``start_time`` is in clock ticks since boot: with the PID it tells the process for good."""
    container = process.container
    return {
        "role": process.role,
        "rank": process.rank,
        "pid": process.pid,
        "start_time": process.identity.start_time,
        "command": list(process.cmdline),
        "container": None if container is None else {"id": container.id, "pid": container.pid},
    }
