"""Makes the runs of a soak, each in a process of its own, and records them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes
from chaos.cli.soak.cells import SoakCells, groups_of, name_of
from chaos.cli.soak.view import SoakView, open_soak_view
from chaos.cli.with_parent import command_of
from chaos.heal.heal import heal_all
from chaos.run.prepare.known_failure import by_signature, failing_checks, sdk_of
from chaos.soak.soak import Cell as CellName
from chaos.soak.soak import SoakRecord, SoakRun, Tally, still_to_run, tally_with_finding
from chaos.soak.stoppable import StoppableRuns

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario


class Soak:
    """The remaining runs, and the processes that make them."""

    def __init__(
        self,
        pairs: list[tuple[LoadedScenario, Cell]],
        reports: Path,
        times: int,
        jobs: int,
        keep_all: bool,
        settings: dict[str, str],
        sdk: str,
        allowances: Sequence[str] = (),
    ) -> None:
        groups = [*groups_of(pairs)]
        by_name = {name_of(cells): (loaded, cells) for loaded, cells in groups}
        if len(by_name) < len(groups):
            raise click.UsageError("two of these scenarios have the same name; their runs could not be distinguished")
        self._cells = SoakCells(by_name, settings, sdk, jobs, allowances)
        self._reports = reports
        self._times = times
        self._jobs = jobs
        self._keep_all = keep_all
        self._record = SoakRecord(reports / "soak.jsonl")
        self._started = StoppableRuns()

    def runs(self) -> list[SoakRun]:
        """Return the runs that count."""
        return [run for run in self._record.runs() if self._cells.counts(run.of, run.code)]

    def other_runs(self) -> list[SoakRun]:
        """Return the runs of these cells that do not count: other code, or another text of the scenario."""
        return [run for run in self._record.runs() if self._cells.codes.get(run.of, run.code) != run.code]

    def tallies(self) -> list[Tally]:
        """Return the result of each cell."""
        runs, groups = self.runs(), self._cells.groups.items()
        return [tally_with_finding(cells[0].scenario, name, runs) for name, (_, cells) in groups]

    def run(self) -> bool:
        """Make the remaining runs; return True when Ctrl-C has ended them."""
        self._put_back()
        left = list(still_to_run(list(self._cells), self.runs(), self._times))
        click.echo(f"{len(left)} runs to make, {len(self.runs())} are recorded", err=True)
        with (
            open_soak_view(lambda: (self._reports,), len(left), self._jobs) as view,
            ThreadPoolExecutor(self._jobs) as pool,
        ):
            waiting: set[Future[SoakRun | None]] = set()
            try:
                for name in left:
                    if len(waiting) == self._jobs:
                        waiting = self._take(waiting, view)
                    waiting.add(pool.submit(self._run_in_process, name))
                while waiting:
                    waiting = self._take(waiting, view)
            except KeyboardInterrupt:
                self._started.stop()
                return True
            except BaseException:
                self._started.stop()
                raise
        return False

    def _put_back(self) -> None:
        """Undo leftovers of runs that were killed along with an earlier soak.

        A soak that is killed alone ends its own runs.
        """
        for report in heal_all(self._reports):
            for text in (*report.done, *report.failed):
                click.echo(f"left by an earlier soak: {report.run}: {text}", err=True)

    def _take(self, waiting: set[Future[SoakRun | None]], view: SoakView) -> set[Future[SoakRun | None]]:
        done, rest = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            if (run := future.result()) is not None:
                self._record.append(run)
                self._mark(run, view)
                view.take(run.verdict or "harness failed", run.seconds)
                name = f"{run.scenario}[{run.cell}]" if run.cell else run.scenario
                view.say(f"{run.verdict or 'harness failed':<14}  {run.seconds:7.1f} s  {name}")
        return rest

    def _mark(self, run: SoakRun, view: SoakView) -> None:
        """Say in the store of runs that this is a run of a soak: its times are those of a busy machine."""
        from chaos.trends.runs import mark_soak_runs

        for sentence in mark_soak_runs(self._reports, (run.run or "").split()):
            view.say(f"chaos: {sentence}")

    def _run_in_process(self, name: CellName) -> SoakRun | None:
        """Run a cell, or two that are compared, in a process of its own; return None where it was interrupted."""
        if self._started.stopped:
            return None
        arguments = ["run", str(self._cells.path(name)), "--json", "--reports", str(self._reports)]
        command = command_of(os.getpid(), [*arguments, *self._cells.arguments(name)])
        started, since = time.time(), time.monotonic()
        ended = self._started.finish(command)
        if ended.code == codes.INTERRUPTED or self._started.stopped:
            return None
        self._cells.refuse_change(name, "this run")
        verdict, runs, failing, sdk = read_answer(ended.output)
        seconds = round(time.monotonic() - since, 1)
        if verdict == "pass" and not self._keep_all:
            for run in runs:
                shutil.rmtree(self._reports / run, ignore_errors=True)
            latest = self._reports / "latest"
            if latest.is_symlink() and not latest.exists():
                latest.unlink(missing_ok=True)
        load = round(os.getloadavg()[0], 1)
        code, made = self._cells.codes[name], " ".join(runs) or None
        return SoakRun(*name, code, verdict, made, round(started, 1), seconds, load, failing, sdk)


def read_answer(output: str) -> tuple[str | None, list[str], str, str]:
    """Return verdict and runs of ``chaos run --json``, comparisons included, the failing checks, and the SDK.

    Where the signatures of findings explain the fail, their ids stand in place of the checks. The verdict is None,
    and no run is listed, without a result.
    """
    try:
        answer = json.loads(output)
        runs = [cell["run"] for cell in answer["cells"] if cell["run"] is not None]
        failed = any(cell["verdict"] is None for cell in answer["cells"])
        results = [cell.get("result") or {} for cell in answer["cells"]]
        comparisons = answer.get("comparisons", ())
        failing = by_signature(results, comparisons) or failing_checks(results, comparisons)
        sdk = " ".join(sorted({sdk_of(result) for result in results if result}))
        return None if failed or not answer["cells"] else answer["verdict"], runs, " ".join(failing), sdk
    except (ValueError, KeyError, TypeError):
        return None, [], "", ""
