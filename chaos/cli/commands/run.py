"""``chaos run``: run scenarios and judge them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chaos.cli import codes, completion
from chaos.cli.debug import Settings, debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import (
    all_option,
    allow_checks_option,
    allow_hook_option,
    cell_option,
    echo_json,
    inventory_option,
    json_option,
    platform_option,
    reports_option,
    sdk_option,
    set_option,
)
from chaos.cli.paths import find_run, make_reports
from chaos.cli.scenarios import load, pick_cells, prepare_cells

if TYPE_CHECKING:
    from chaos.report.summary import Summary
    from chaos.run.options import RunOptions, RunOutcome
    from chaos.run.prepare.prepared import Prepared
    from chaos.scenario.load import LoadedScenario


@dataclass(frozen=True)
class _Output:
    """How a call prints its results, as the options say."""

    as_json: bool
    everything: bool
    debug: bool


@click.command("run", short_help="Run scenarios: start the job, inject the faults, judge.")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...", shell_complete=completion.scenarios)
@set_option
@platform_option
@inventory_option
@cell_option
@click.option("--seed", type=click.IntRange(min=0), help="Seed for random targets, as an earlier run printed it.")
@click.option(
    "--baseline",
    metavar="auto|none|RUN",
    shell_complete=completion.runs,
    help="Fault-free run to compare with. Default: as the file says.",
)
@reports_option
@click.option("--keep-going", is_flag=True, help="Go on with the next cell after one that does not pass.")
@sdk_option
@click.option("--no-report", is_flag=True, help="Make no report.html in the directory of a run.")
@click.option("--cores", type=click.IntRange(min=1), help="Cores this job may take. Default: all that are free.")
@allow_checks_option
@allow_hook_option
@all_option
@json_option
@debug_option
@click.pass_context
def command(
    context: click.Context,
    scenarios: tuple[str, ...],
    settings: dict[str, str],
    platform: str | None,
    inventory: Path | None,
    cells: tuple[str, ...],
    seed: int | None,
    baseline: str | None,
    reports: Path,
    keep_going: bool,
    sdk: str,
    no_report: bool,
    cores: int | None,
    allow_checks: tuple[str, ...],
    allow_hooks: tuple[str, ...],
    everything: bool,
    as_json: bool,
) -> int:
    """Start the job, inject the faults, watch the recovery and judge it.

    SCENARIO is a file, a pipe, - for standard input, or a name: in ./scenarios or the nearest parent's scenarios/, else
    among those that chaos comes with. Every matrix cell gets a directory of its own in the reports directory; `latest`
    there points at the last one, and summary.json tells about all cells of this call. Without --keep-going the first
    cell that does not pass ends it. Of such a cell it prints what broke first, and how many statements follow from
    that; --all prints those too.

    \b
    Examples:
      chaos run kill-rank.yaml
      chaos run kill-rank-phases.yaml --cell phase=forward --baseline none
      chaos run scenarios/mechanisms --keep-going --json

    \b
    Exit codes: 0 pass, 1 fail, 2 unknown, 3 the harness failed,
    64 bad usage or scenario, or this machine lacks what it needs,
    130 interrupted. The worst cell decides.
    """
    from chaos.cli.own_code import allowance
    from chaos.run.prepare.prepare import fresh_seed

    loaded = [load(text, settings, platform, inventory) for text in scenarios]
    draw_seed = fresh_seed() if seed is None else seed
    pairs = pick_cells(loaded, cells)
    cells_of_call = prepare_cells(pairs, sdk, draw_seed)
    allowed = allowance(pairs, allow_checks, allow_hooks)
    make_reports(reports)

    from chaos.run.options import RunOptions

    if baseline not in (None, "auto", "none"):
        baseline = str(find_run(baseline, reports))
    settled = context.ensure_object(Settings)
    options = RunOptions(reports.resolve(), baseline, cores, settled.arguments, page=not no_report, allowed=allowed)
    output = _Output(as_json, everything, settled.debug)
    summary = _run(cells_of_call, options, scenarios, keep_going=keep_going, output=output)
    summary = _with_comparisons(summary, loaded)
    saved = _save(summary, reports)
    settled.kept = f"the verdict, {summary.verdict}, is in {reports / 'summary.json'}"
    if as_json:
        echo_json(_with_results(summary))
    elif len(cells_of_call) > 1:
        _print_comparisons(summary)
        _print_summary(summary, reports)
    return _exit_code(summary) if saved else codes.HARNESS


def _run(
    cells: Sequence[Prepared],
    options: RunOptions,
    scenarios: Sequence[str],
    *,
    keep_going: bool,
    output: _Output,
) -> Summary:
    """Run the cells, show each result, and keep summary.json up to date. ``scenarios`` are named as the user did."""
    from chaos.cli.failure import explain
    from chaos.cli.progress import open_progress
    from chaos.report.summary import write_summary
    from chaos.run.cells import label, run_cells
    from chaos.run.driver import run_cell

    numbers = itertools.count(1)

    def run_and_print(cell: Prepared) -> RunOutcome:
        number, of = next(numbers), len(cells)
        with open_progress(to_errors=output.as_json) as progress:
            if of > 1:
                progress.note(f"cell {number} of {of}: {label(cell.loaded, cell.cell)}")
            outcome = run_cell(cell, replace(options, number=number, of=of), progress)
        if not output.as_json:
            _print_result(outcome, everything=output.everything)
        return outcome

    def failed(error: Exception) -> str:
        text = explain(error, ["run", *scenarios], debug=output.debug)
        click.echo(text, err=True)
        return text

    def save(so_far: Summary) -> None:
        with suppress(OSError):  # shown at the end
            if so_far.cells:
                write_summary(so_far, options.reports)

    with ended_like_ctrl_c():
        return run_cells(
            cells,
            run_and_print,
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            clock=time.monotonic,
            keep_going=keep_going,
            failed=failed,
            done=save,
        )


def _exit_code(summary: Summary) -> int:
    if summary.interrupted:
        return codes.INTERRUPTED
    if without := [cell for cell in summary.cells if cell.verdict is None]:
        return codes.USAGE if all(cell.refused for cell in without) else codes.HARNESS
    return codes.of_verdict(summary.verdict)


def _save(summary: Summary, reports: Path) -> bool:
    """Write summary.json. Returns False, after a line about it, where the disk does not take it."""
    from chaos.report.summary import write_summary

    try:
        if summary.cells:
            write_summary(summary, reports)
    except OSError as error:
        click.echo(f"chaos: {reports / 'summary.json'} cannot be written: {error.strerror}", err=True)
        return False
    return True


def _with_results(summary: Summary) -> dict[str, Any]:
    """Return the summary with the result.json of each cell beside it."""
    import json

    plain = summary.to_json()
    for entry in plain["cells"]:
        path = Path(entry["directory"]) / "result.json" if entry["directory"] else None
        entry["result"] = json.loads(path.read_text("utf-8")) if path and path.is_file() else None
    return plain


def _with_comparisons(summary: Summary, loaded: list[LoadedScenario]) -> Summary:
    """Return the summary with a comparison of every pair of cells that its scenario compares and that both were run."""
    from chaos.report.compare import compare
    from chaos.report.result_file import read_result
    from chaos.scenario.pairs import pairs as compared

    runs = {(cell.scenario, cell.cell): cell.directory for cell in summary.cells if cell.directory is not None}
    comparisons = []
    for scenario in loaded:
        for cell_of_pair, other in compared(scenario.cells):
            first, second = (runs.get((cell.scenario.name, cell.name)) for cell in (cell_of_pair, other))
            if first is not None and second is not None:
                comparisons.append(compare(read_result(Path(first)), read_result(Path(second))))
    return replace(summary, comparisons=tuple(comparisons))


def _print_comparisons(summary: Summary) -> None:
    from chaos.cli.show import show_comparison

    for comparison in summary.comparisons:
        click.echo("")
        show_comparison(comparison)


def _print_result(outcome: RunOutcome, *, everything: bool = False) -> None:
    from chaos.cli.show import show, show_interrupted
    from chaos.report.result_file import read_result

    result = read_result(outcome.run_dir)
    if outcome.interrupted and outcome.verdict != "fail":
        show_interrupted(result, outcome.run_dir)
    else:
        show(result, outcome.run_dir, everything=everything)


def _print_summary(summary: Summary, reports: Path) -> None:
    click.echo("")
    for cell in summary.cells:
        name = f"{cell.scenario}[{cell.cell}]" if cell.cell else cell.scenario
        what = cell.verdict or ("refused" if cell.refused else "harness failed")
        click.echo(f"{what:<14}  {cell.seconds:7.1f} s  {name}  {cell.run or ''}".rstrip())
    for name in summary.not_run:
        click.echo(f"{'not run':<14}  {'':9}  {name}")
    click.echo(f"{summary.verdict}: {len(summary.cells)} cells run, see {reports / 'summary.json'}")
