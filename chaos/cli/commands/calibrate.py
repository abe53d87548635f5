"""``chaos calibrate``: measure the noise of a scenario's job, and write its tolerance into the scenario."""

from __future__ import annotations

from datetime import date
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chaos.base.refusal import Refused
from chaos.cli import codes, completion
from chaos.cli.debug import Settings, debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import (
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
    from chaos.calibration.calibration import Calibration
    from chaos.calibration.noise import Recorded
    from chaos.run.options import RunOptions, RunOutcome
    from chaos.run.prepare.prepared import Prepared


@click.command("calibrate", short_help="Measure the noise of a job and write its tolerance.")
@click.argument("scenario", metavar="SCENARIO", shell_complete=completion.scenarios)
@click.option("--runs", "count", type=click.IntRange(3, 100), default=5, show_default=True, help="Fault-free runs.")
@click.option(
    "--false-alarm",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.01,
    show_default=True,
    help="Share of sound runs that may exceed a limit.",
)
@click.option(
    "--from",
    "run_names",
    multiple=True,
    metavar="RUN",
    shell_complete=completion.runs,
    help="Measure this run, make none; repeat it.",
)
@click.option("--dry-run", is_flag=True, help="Show the change of the file, write nothing.")
@click.option("--undo", "undoing", is_flag=True, help="Write the text before the last calibration again; run nothing.")
@set_option
@platform_option
@inventory_option
@cell_option
@reports_option
@sdk_option
@click.option("--cores", type=click.IntRange(min=1), help="Cores the job may take. Default: all that are free.")
@json_option
@debug_option
@click.pass_context
def command(
    context: click.Context,
    scenario: str,
    count: int,
    false_alarm: float,
    run_names: tuple[str, ...],
    dry_run: bool,
    undoing: bool,
    settings: dict[str, str],
    platform: str | None,
    inventory: Path | None,
    cells: tuple[str, ...],
    reports: Path,
    sdk: str,
    cores: int | None,
    as_json: bool,
) -> int:
    """Run a scenario's job several times without its faults, and measure how far the runs are apart.

    Says whether the job is deterministic and what would make it so. If it is not, limits for its losses, weights and
    optimizer state are written into expect.loss of the scenario, with the share of false alarms. Comments stay. The
    text before is kept beside the file for --undo.

    \b
    Examples:
      chaos calibrate my-script.yaml --runs 8 --dry-run
      chaos calibrate my-script.yaml
      chaos calibrate my-script.yaml --undo

    \b
    Exit codes: 0 limits written, or none needed; 2 no limit helps;
    3 the harness failed; 64 bad usage or scenario; 130 interrupted.
    """
    from chaos.calibration.calibration import calibrate
    from chaos.calibration.runs import job_of
    from chaos.calibration.store import read, undo
    from chaos.cli.own_code import allowance, without_checks
    from chaos.own.allowed import NOTHING
    from chaos.run.options import RunOptions

    loaded = load(scenario, settings, platform, inventory)
    try:
        if undoing:
            undo(loaded.path)
            click.echo(f"{loaded.path} is as it was before the calibration")
            return codes.PASS
        pairs = pick_cells([loaded], cells)
        if len(pairs) > 1:
            raise click.UsageError(f"{loaded.path}: has {len(pairs)} cells; name one with --cell")
        before = "" if dry_run and not loaded.path.is_file() else read(loaded.path)
        (prepared,) = map(without_checks, prepare_cells(pairs, sdk))
        allowed = NOTHING if run_names else allowance([(prepared.loaded, prepared.cell)], (), ())
        make_reports(reports)
        arguments = context.ensure_object(Settings).arguments
        options = RunOptions(reports.resolve(), "none", cores, arguments, page=False, allowed=allowed)
        runs = _runs(prepared, count, run_names, options, as_json=as_json)
        if runs is None:
            return codes.INTERRUPTED
        calibration = calibrate(prepared.plan, runs, false_alarm)
        job = job_of(runs)
        change = _change(loaded.path, before, calibration, runs, job, dry_run=dry_run)
    except Refused as error:
        raise click.UsageError(str(error)) from error
    names = [run.name for run in runs]
    if as_json:
        echo_json(_as_json(prepared, calibration, names, job, written=bool(change) and not dry_run))
    else:
        _show(prepared, calibration, names, change)
    return codes.UNKNOWN if calibration.refusal is not None else codes.PASS


def _runs(
    prepared: Prepared,
    count: int,
    run_names: tuple[str, ...],
    options: RunOptions,
    *,
    as_json: bool,
) -> list[Recorded] | None:
    """Make the runs, or read those that are given. None where Ctrl-C ended them."""
    from chaos.calibration.runs import Interrupted, make_runs, read_given
    from chaos.calibration.tolerance import LEAST_RUNS
    from chaos.cli.progress import open_progress
    from chaos.run.driver import run_cell

    if run_names:
        paths = list(dict.fromkeys(find_run(name, options.reports).resolve() for name in run_names))
        if len(paths) < LEAST_RUNS:
            raise click.UsageError(f"--from: {len(paths)} runs, {LEAST_RUNS} are needed")
        return [read_given(path, prepared) for path in paths]

    def run(job: Prepared, options: RunOptions) -> RunOutcome:
        with open_progress(to_errors=as_json) as progress:
            progress.note(f"fault-free run {options.number} of {options.of}")
            return run_cell(job, options, progress)

    try:
        with ended_like_ctrl_c():
            return make_runs(prepared, count, options, run)
    except Interrupted as interrupted:
        click.echo(f"interrupted: {interrupted.run_dir}", err=True)
        return None


def _change(
    path: Path, before: str, calibration: Calibration, runs: list[Recorded], job: dict[str, str], *, dry_run: bool
) -> str:
    """Write the limits into the scenario, unless it is a dry run. Return the difference of the texts."""
    from chaos.calibration.edit import MARK, with_limits
    from chaos.calibration.store import write

    if calibration.tolerance is None:
        return ""
    share, limits = calibration.tolerance.false_alarm, len(calibration.tolerance.limits)
    comment = (
        f"{MARK}{len(runs)} fault-free runs on {date.today().isoformat()}, {limits} limits;",
        f"{MARK}at most {share:.2%} of sound runs exceed one of them",
    )
    after = with_limits(before, {**calibration.limits(), **({"measured": job} if job else {})}, comment)
    if not dry_run:
        write(path, before, after)
    lines = unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2)
    shown = "\n".join(lines)
    if not job:
        shown += "\nthe runs do not tell of which job they are: the limits are believed whatever becomes of the job"
    return shown if dry_run else f"{shown}\nwritten; chaos calibrate {path} --undo takes it back"


def _as_json(
    prepared: Prepared, calibration: Calibration, runs: list[str], job: dict[str, str], *, written: bool
) -> dict[str, Any]:
    """Return the result. ``measured`` is the job that the limits are of, as it stands in the file beside them."""
    limited = calibration.tolerance is not None
    return {
        "schema_version": 1,
        "scenario": prepared.scenario.name,
        "runs": runs,
        "steps": prepared.scenario.job.steps,
        "deterministic": calibration.noise.comparisons > 0 and calibration.noise.deterministic,
        "comparisons": calibration.noise.comparisons,
        "refusal": calibration.refusal,
        "limits": calibration.limits() if limited else None,
        "measured": job or None if limited else None,
        "written": written,
        "sentences": _sentences(prepared, calibration),
    }


def _sentences(prepared: Prepared, calibration: Calibration) -> list[str]:
    """Return what was measured, and the lines of the job's script that have to do with its noise."""
    from chaos.calibration.calibration import sentences

    signs = [] if calibration.noise.deterministic else [f"in {sign}" for sign in _signs(prepared)]
    return [*sentences(calibration), *signs]


def _show(prepared: Prepared, calibration: Calibration, runs: list[str], change: str) -> None:
    scenario = prepared.scenario
    click.echo(f"{scenario.name}: {len(runs)} fault-free runs of {scenario.job.steps} steps")
    for sentence in _sentences(prepared, calibration):
        click.echo(f"  {sentence}")
    if calibration.refusal is not None:
        click.echo(f"no tolerance helps: {calibration.refusal}")
    if change:
        click.echo(change)


def _signs(prepared: Prepared) -> list[str]:
    """Return the lines of the job's script that have to do with its noise."""
    from chaos.base.plain_files import read_plain
    from chaos.calibration.advice import signs

    if prepared.scenario.job.script is None:
        return []
    path = prepared.loaded.path.parent / prepared.scenario.job.script
    try:
        text = read_plain(path).decode("utf-8", "replace")
    except OSError:
        return []
    return [f"{prepared.scenario.job.script}, {sign}" for sign in signs(text)]
