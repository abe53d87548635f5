"""``chaos soak``: run scenarios many times, on and on over interruptions."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

import click

import chaos
from chaos.base.named_files import is_pipe
from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import cell_option, echo_json, json_option, reports_option, sdk_option, set_option
from chaos.cli.paths import make_reports
from chaos.cli.random_soak import DrawnScenario, draw_scenarios, print_summary, summarise
from chaos.cli.scenarios import load, pick_cells, refuse_impossible
from chaos.cli.soak_view import SoakView, open_soak_view
from chaos.cli.with_parent import command_of
from chaos.heal.heal import heal_all
from chaos.run.prepare.known_failure import failing_checks, sdk_of
from chaos.scenario.models.job import DEFAULT_KIND
from chaos.scenario.pairs import pairs as compared
from chaos.soak.recoveries import recipes
from chaos.soak.soak import Keys, SoakRecord, SoakRun, Tally, keys_of_cells, still_to_run, tally_with_finding
from chaos.soak.stoppable import StoppableRuns

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario

_PACKAGE = Path(chaos.__file__).parent
"""All of the harness's code: a change anywhere in it makes runs of another one."""


@click.command("soak", short_help="Run scenarios many times and add up the verdicts.")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO...]")
@click.option("--times", type=click.IntRange(min=1), help="Runs of each cell in all.  [default: 10; 1 with --random]")
@click.option(
    "--random", "number", type=click.IntRange(min=1), help="Draw this many good recoveries at random and run them."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help=f"Kind of the drawn jobs; may be repeated.  [default: {DEFAULT_KIND}]",
)
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(tuple(recipes())),
    help="Draw these only; may be repeated.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs at the same time.")
@click.option("--keep", type=click.Choice(["bad", "all"]), default="bad", show_default=True, help="Runs to keep.")
@click.option(
    "--kill", is_flag=True, help="Kill the harness of every run at a random moment, heal, and check what is left."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed for the moments of --kill, or for the draws of --random (default there: 1).",
)
@set_option
@sdk_option
@cell_option
@reports_option
@json_option
@debug_option
def command(
    scenarios: tuple[str, ...],
    times: int | None,
    number: int | None,
    kinds: tuple[str, ...],
    mechanisms: tuple[str, ...],
    jobs: int,
    keep: str,
    kill: bool,
    seed: int | None,
    settings: dict[str, str],
    sdk: str,
    cells: tuple[str, ...],
    reports: Path,
    as_json: bool,
) -> int:
    """Run every cell until it has run --times times in all, and say how often it passed.

    Each finished run is a line of REPORTS/soak.jsonl. Started again after Ctrl-C, or after the machine went down, it
    goes on with what is left; runs of other code, inputs or versions, or of a changed scenario, do not count. A cell
    whose runs do not agree is flaky, and so is a known finding that does not always fail in the same checks; with
    `always: false` its runs may pass too. One that fails in a check that its scenario does not name (key `failing`)
    is bad. A finding of another SDK than the runs had does not count.

    With --kill it is the harness that is tested: SIGKILL at a random moment, `chaos heal` (every fourth is killed too
    and done again), then a search for processes, networks, mounts, directories, locks, containers where the run's
    platform has some, and histories that cannot be read. A search that cannot be made counts as something left. Each
    kill is a line of REPORTS/kills.jsonl, which is gone on with in the same way; runs that left something are kept.
    It says which kinds of undo steps were open at no kill.

    With --random the scenarios are drawn: recoveries that the plan says are good, so none of them may be blamed. The
    seed gives the same ones again; each is kept in REPORTS/random/ and can be run by itself.

    \b
    Examples:
      chaos soak scenarios/ --times 10 --jobs 2
      chaos soak kill-rank.yaml --times 50 --reports soak/
      chaos soak kill-rank.yaml disk-full.yaml --kill --times 100 --jobs 2
      chaos soak --random 60 --seed 7 --reports soak/
      chaos soak ttp-groups.yaml --sdk vendor --times 20

    \b
    Exit codes: 0 every run has passed (or failed as its finding says), 1 one
    failed, 2 one is unknown or was not made, 3 the harness failed (with
    --kill: something was left), 64 bad usage or scenario, 130 interrupted.
    """
    _refuse_contradictions(scenarios, number, settings, cells)
    make_reports(reports)
    drawn_by = 1 if seed is None else seed
    drawn = [] if number is None else _drawn(number, drawn_by, reports, kinds, mechanisms, sdk)
    pairs = (
        _given(scenarios, settings, cells)
        if number is None
        else [(scenario.loaded, scenario.cell) for scenario in drawn]
    )
    refuse_impossible(pairs, sdk)
    times = times or (10 if number is None else 1)
    if kill:
        return _kill(pairs, reports, times=times, jobs=jobs, settings=settings, sdk=sdk, seed=seed, as_json=as_json)
    soak = _Soak(pairs, reports, times, jobs, keep == "all", settings, sdk)
    return _run(soak, drawn, drawn_by, times, reports, as_json=as_json)


def _refuse_contradictions(
    scenarios: tuple[str, ...], number: int | None, settings: dict[str, str], cells: tuple[str, ...]
) -> None:
    if (number is None) == (not scenarios):
        raise click.UsageError("give scenarios, or --random for drawn ones")
    if number is not None and (settings or cells):
        raise click.UsageError("a drawn scenario has neither variables nor cells: leave --set and --cell out")


def _given(
    scenarios: tuple[str, ...], settings: dict[str, str], cells: tuple[str, ...]
) -> list[tuple[LoadedScenario, Cell]]:
    """Return the cells of the scenarios that the command line names."""
    return pick_cells([load(_not_piped(text), settings) for text in scenarios], cells)


def _drawn(
    number: int, seed: int, reports: Path, kinds: tuple[str, ...], mechanisms: tuple[str, ...], sdk: str
) -> list[DrawnScenario]:
    """Return the scenarios that the seed draws, kept in the reports directory."""
    kinds = kinds or (DEFAULT_KIND,)
    return draw_scenarios(number, seed, directory=reports / "random", kinds=kinds, mechanisms=mechanisms, sdk=sdk)


def _kill(
    pairs: list[tuple[LoadedScenario, Cell]],
    reports: Path,
    *,
    times: int,
    jobs: int,
    settings: dict[str, str],
    sdk: str,
    seed: int | None,
    as_json: bool,
) -> int:
    """Kill the harness of every run instead."""
    from chaos.cli.soak_kills import soak_kills

    with ended_like_ctrl_c():
        return soak_kills(
            pairs, reports, times=times, jobs=jobs, settings=settings, sdk=sdk, seed=seed, as_json=as_json
        )


def _run(soak: _Soak, drawn: list[DrawnScenario], seed: int, times: int, reports: Path, *, as_json: bool) -> int:
    """Make the remaining runs, and show all results. Returns the exit code."""
    with ended_like_ctrl_c():
        interrupted = soak.run()
    tallies = soak.tallies()
    summary = summarise(drawn, soak.runs(), soak.other_runs(), reports) if drawn else None
    if as_json:
        result = {"times": times, "interrupted": interrupted, "cells": [tally.to_json() for tally in tallies]}
        echo_json(result if summary is None else {**result, "random": {"seed": seed, **summary}})
    elif summary is not None:
        print_summary(summary)
    else:
        _print(tallies, times, reports)
    return codes.INTERRUPTED if interrupted else _exit_code(tallies, times)


def _not_piped(text: str) -> str:
    """Return a scenario that every run can read again, and this command too when it goes on after an interruption."""
    if is_pipe(Path(text)):
        raise click.UsageError(f"{text} is a pipe, which gives its content once, and every run reads it: give a file")
    return text


class _Soak:
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
    ) -> None:
        groups = [*_groups(pairs)]
        self._cells = {_name(cells): (loaded, cells) for loaded, cells in groups}
        if len(self._cells) < len(groups):
            raise click.UsageError("two of these scenarios have the same name; their runs could not be distinguished")
        self._settings = settings
        self._sdk = sdk
        self._keys = {name: self._key(name) for name in self._cells}
        self._codes = {name: keys.of for name, keys in self._keys.items()}
        self._reports = reports
        self._times = times
        self._jobs = jobs
        self._keep_all = keep_all
        self._record = SoakRecord(reports / "soak.jsonl")
        self._started = StoppableRuns()

    def runs(self) -> list[SoakRun]:
        """Return the runs that count."""
        return [run for run in self._record.runs() if self._codes.get(run.of) == run.code]

    def other_runs(self) -> list[SoakRun]:
        """Return the runs of these cells that do not count: other code, or another text of the scenario."""
        return [run for run in self._record.runs() if self._codes.get(run.of, run.code) != run.code]

    def tallies(self) -> list[Tally]:
        """Return the result of each cell."""
        runs = self.runs()
        return [tally_with_finding(cells[0].scenario, name, runs) for name, (_, cells) in self._cells.items()]

    def run(self) -> bool:
        """Make the remaining runs; return True when Ctrl-C has ended them."""
        self._put_back()
        left = list(still_to_run(list(self._cells), self.runs(), self._times))
        click.echo(f"{len(left)} runs to make, {len(self.runs())} are recorded", err=True)
        with open_soak_view(self._reports, len(left), self._jobs) as view, ThreadPoolExecutor(self._jobs) as pool:
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

    def _key(self, name: tuple[str, str]) -> Keys:
        loaded, cells = self._cells[name]
        return keys_of_cells(loaded, cells, self._settings, _PACKAGE, self._sdk)

    def _take(self, waiting: set[Future[SoakRun | None]], view: SoakView) -> set[Future[SoakRun | None]]:
        done, rest = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            if (run := future.result()) is not None:
                self._record.append(run)
                self._mark(run, view)
                view.take(run.verdict, run.seconds)
                name = f"{run.scenario}[{run.cell}]" if run.cell else run.scenario
                view.say(f"{run.verdict or 'harness failed':<14}  {run.seconds:7.1f} s  {name}")
        return rest

    def _mark(self, run: SoakRun, view: SoakView) -> None:
        """Say in the store of runs that this is a run of a soak: its times are those of a busy machine."""
        from chaos.trends.runs import mark_soak_runs

        for sentence in mark_soak_runs(self._reports, (run.run or "").split()):
            view.say(f"chaos: {sentence}")

    def _run_in_process(self, name: tuple[str, str]) -> SoakRun | None:
        """Run a cell, or two that are compared, in a process of its own; return None where it was interrupted."""
        if self._started.stopped:
            return None
        loaded, cells = self._cells[name]
        command = command_of(os.getpid(), ["run", str(loaded.path), "--json", "--sdk", self._sdk])
        command += ["--reports", str(self._reports)]
        command += [part for cell in cells if cell.name for part in ("--cell", cell.name)]
        command += [part for key, value in self._settings.items() for part in ("--set", f"{key}={value}")]
        if self._jobs > 1:
            command += ["--cores", str(max(1, len(os.sched_getaffinity(0)) // self._jobs))]
        started, since = time.time(), time.monotonic()
        ended = self._started.finish(command)
        if ended.code == codes.INTERRUPTED or self._started.stopped:
            return None
        if self._key(name).sources != self._keys[name].sources:
            raise click.ClickException(
                f"{loaded.path}: the scenario, an input of its job, a version or the harness's own code has changed "
                "since the soak began: this run does not count; start the soak again"
            )
        verdict, runs, failing, sdk = _read(ended.output)
        seconds = round(time.monotonic() - since, 1)
        if verdict == "pass" and not self._keep_all:
            for run in runs:
                shutil.rmtree(self._reports / run, ignore_errors=True)
            latest = self._reports / "latest"
            if latest.is_symlink() and not latest.exists():
                latest.unlink(missing_ok=True)
        load = round(os.getloadavg()[0], 1)
        code, made = self._codes[name], " ".join(runs) or None
        return SoakRun(*name, code, verdict, made, round(started, 1), seconds, load, failing, sdk)


def _groups(pairs: list[tuple[LoadedScenario, Cell]]) -> Iterator[tuple[LoadedScenario, tuple[Cell, ...]]]:
    """Yield the cells that run together: each cell by itself, or two that their scenario compares."""
    for loaded in {id(loaded): loaded for loaded, _ in pairs}.values():
        cells = [cell for other, cell in pairs if other is loaded]
        together = [*compared(cells)]
        paired = {id(cell) for pair in together for cell in pair}
        alone = [(cell,) for cell in cells if id(cell) not in paired]
        yield from ((loaded, group) for group in (*together, *alone))


def _name(cells: tuple[Cell, ...]) -> tuple[str, str]:
    return cells[0].scenario.name, " | ".join(cell.name for cell in cells)


def _read(output: str) -> tuple[str | None, list[str], str, str]:
    """Return verdict and runs of ``chaos run --json``, comparisons included, the failing checks, and the SDK.

    The verdict is None, and no run is listed, without a result.
    """
    try:
        answer = json.loads(output)
        runs = [cell["run"] for cell in answer["cells"] if cell["run"] is not None]
        failed = any(cell["verdict"] is None for cell in answer["cells"])
        results = [cell.get("result") or {} for cell in answer["cells"]]
        failing = failing_checks(results, answer.get("comparisons", ()))
        sdk = " ".join(sorted({sdk_of(result) for result in results if result}))
        return None if failed or not answer["cells"] else answer["verdict"], runs, " ".join(failing), sdk
    except (ValueError, KeyError, TypeError):
        return None, [], "", ""


def _print(tallies: list[Tally], times: int, reports: Path) -> None:
    for tally in tallies:
        name = f"{tally.scenario}[{tally.cell}]" if tally.cell else tally.scenario
        counts = ", ".join(f"{count} {verdict}" for verdict, count in tally.verdicts.items() if count)
        counts += f" (differently: {'; '.join(tally.failing)})" if len(tally.failing) > 1 else ""
        counts += f" (not by the finding: {', '.join(tally.unexpected)})" if tally.unexpected else ""
        counts += f", {tally.harness_failed} of the harness" if tally.harness_failed else ""
        mark = (
            "flaky"
            if tally.flaky
            else "good"
            if tally.good and tally.runs >= times
            else "open"
            if tally.good or not tally.runs
            else "bad"
        )
        click.echo(f"{mark:<6}  {tally.runs:4} of {times}  {name}: {counts or 'no run'}")
    good = sum(tally.good and tally.runs >= times for tally in tallies)
    click.echo(f"{good} of {len(tallies)} cells are good {times} times; the runs are in {reports / 'soak.jsonl'}")


def _exit_code(tallies: list[Tally], times: int) -> int:
    """Return the exit code. Fewer runs than requested show nothing, whatever became of the others."""
    if any(tally.harness_failed for tally in tallies):
        return codes.HARNESS
    bad = [tally for tally in tallies if tally.runs and not tally.good]
    if any(tally.verdicts["fail"] != 0 or tally.wanted == "fail" for tally in bad):
        return codes.of_verdict("fail")
    lacking = not tallies or any(tally.runs < times for tally in tallies)
    return codes.of_verdict("unknown" if bad or lacking else "pass")
