"""Runs the cells of one call, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chaos.base.refusal import Refused
from chaos.evidence.finding import Verdict
from chaos.report.summary import CellOutcome, Summary
from chaos.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from chaos.run.prepare.prepared import Prepared
    from chaos.scenario.load import Cell, LoadedScenario


class Outcome(Protocol):
    """The result of running one cell."""

    @property
    def run_dir(self) -> Path:
        """Directory of the run."""
        ...

    @property
    def verdict(self) -> str:
        """pass, fail or unknown."""
        ...

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it; then everything has been stopped and undone."""
        ...


def run_cells(
    cells: Sequence[Prepared],
    run_cell: Callable[[Prepared], Outcome],
    *,
    started: str,
    clock: Callable[[], float],
    keep_going: bool,
    failed: Callable[[Exception], str],
    done: Callable[[Summary], None],
) -> Summary:
    """Run each cell, and stop after the first that does not pass unless ``keep_going`` is set. Ctrl-C always stops.

    ``started`` is the time of the call (ISO 8601), ``clock`` gives seconds. An exception of the harness becomes the
    cell's error, in the words of ``failed``. ``done`` is called with the summary so far after every cell.
    """
    summary = Summary(started, (), tuple(label(prepared.loaded, prepared.cell) for prepared in cells))
    for prepared in cells:
        begun = clock()
        cell, scenario = prepared.cell, prepared.scenario.name
        try:
            outcome = run_cell(prepared)
        except KeyboardInterrupt:
            summary = replace(summary, interrupted=True)
            done(summary)
            break
        except Exception as error:
            refused = isinstance(error, (Refused, ScenarioError))
            entry = CellOutcome(scenario, cell.name, None, None, clock() - begun, None, failed(error), refused)
        else:
            verdict: Verdict = _verdict(outcome.verdict)
            name, directory = outcome.run_dir.name, str(outcome.run_dir)
            entry = CellOutcome(scenario, cell.name, name, verdict, clock() - begun, directory)
            summary = replace(summary, interrupted=outcome.interrupted)
        summary = replace(summary, cells=(*summary.cells, entry), not_run=summary.not_run[1:])
        done(summary)
        if summary.interrupted or not (entry.verdict == "pass" or keep_going):
            break
    return summary


def label(loaded: LoadedScenario, cell: Cell) -> str:
    """Return the readable name of a cell: ``kill-rank[victim=1]``."""
    name = loaded.path.stem if not cell.scenario.name else cell.scenario.name
    return f"{name}[{cell.name}]" if cell.name else name


def _verdict(text: str) -> Verdict:
    if text == "pass":
        return "pass"
    return "fail" if text == "fail" else "unknown"
