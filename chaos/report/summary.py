"""summary.json: the outcome of one call of ``chaos run``, over all its cells."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.evidence.finding import Verdict, worst
from chaos.store.directory import write_json

if TYPE_CHECKING:
    from chaos.report.compare import Comparison

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class CellOutcome:
    """One cell that was run. ``verdict`` is None where the harness failed; ``error`` then says how.

    ``refused``: nothing of the cell was started, since the scenario cannot work or this machine lacks something that it
    needs.
    """

    scenario: str
    cell: str
    run: str | None
    verdict: Verdict | None
    seconds: float
    directory: str | None = None
    error: str | None = None
    refused: bool = False


@dataclass(frozen=True)
class Summary:
    """All cells of one call. ``not_run`` names the cells that an earlier failure or Ctrl-C kept from starting.

    ``comparisons`` holds one for each pair of cells that the scenario compares, once both were run.
    """

    started: str
    cells: tuple[CellOutcome, ...]
    not_run: tuple[str, ...] = ()
    interrupted: bool = False
    comparisons: tuple[Comparison, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict; a cell without a verdict, or never run, counts as unknown."""
        verdicts: list[Verdict] = [cell.verdict or "unknown" for cell in self.cells]
        verdicts += [comparison.verdict for comparison in self.comparisons]
        return worst([*verdicts, "unknown"] if self.not_run or self.interrupted else verdicts)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, as it is written to summary.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "started": self.started,
            "verdict": self.verdict,
            "interrupted": self.interrupted,
            "cells": [asdict(cell) for cell in self.cells],
            "not_run": list(self.not_run),
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
        }


def write_summary(summary: Summary, reports: Path) -> Path:
    """Write summary.json into the reports directory, in one piece: a reader never sees half of it."""
    reports.mkdir(parents=True, exist_ok=True)
    path = reports / "summary.json"
    write_json(path, summary.to_json())
    return path
