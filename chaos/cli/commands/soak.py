"""``chaos soak``: run scenarios many times, on and on over interruptions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.base.named_files import is_pipe
from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.lazy_choice import LazyChoice
from chaos.cli.options import (
    allow_checks_option,
    allow_hook_option,
    cell_option,
    echo_json,
    json_option,
    reports_option,
    sdk_option,
    set_option,
)
from chaos.cli.paths import make_reports
from chaos.scenario.models.defaults import DEFAULT_KIND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chaos.cli.soak.random_soak import DrawnScenario
    from chaos.cli.soak.runs import Soak
    from chaos.scenario.load import Cell, LoadedScenario


def _recipes() -> Iterable[str]:
    from chaos.soak.recoveries import recipes

    return recipes()


@click.command("soak", short_help="Run scenarios many times and add up the verdicts.")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO...]", shell_complete=completion.scenarios)
@click.option("--times", type=click.IntRange(min=1), help="Runs of each cell in all.  [default: 10; 1 with --random]")
@click.option(
    "--random", "number", type=click.IntRange(min=1), help="Draw this many good recoveries at random and run them."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    shell_complete=completion.jobs,
    help=f"Kind of the drawn jobs; may be repeated.  [default: {DEFAULT_KIND}]",
)
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=LazyChoice(_recipes),
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
@allow_checks_option
@allow_hook_option
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
    allow_checks: tuple[str, ...],
    allow_hooks: tuple[str, ...],
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
      chaos soak lost.yaml --times 20 --allow-checks losses:falls

    \b
    Exit codes: 0 every run has passed (or failed as its finding says), 1 one
    failed, 2 one is unknown or was not made, 3 the harness failed (with
    --kill: something was left), 64 bad usage or scenario, 130 interrupted.
    """
    from chaos.cli.own_code import allowance, allowance_arguments
    from chaos.cli.scenarios import refuse_impossible

    given = bool(settings or cells or allow_checks or allow_hooks)
    _refuse_contradictions(scenarios, number, given_with_number=given)
    make_reports(reports)
    drawn_by = 1 if seed is None else seed
    drawn = [] if number is None else _drawn(number, drawn_by, reports, kinds, mechanisms, sdk)
    pairs = (
        _given(scenarios, settings, cells)
        if number is None
        else [(scenario.loaded, scenario.cell) for scenario in drawn]
    )
    refuse_impossible(pairs, sdk)
    allowance(pairs, allow_checks, allow_hooks)
    allowances = allowance_arguments(allow_checks, allow_hooks)
    times = times or (10 if number is None else 1)
    if kill:
        from chaos.cli.soak.kill_soak import soak_kills

        with ended_like_ctrl_c():
            return soak_kills(
                pairs,
                reports,
                times=times,
                jobs=jobs,
                settings=settings,
                sdk=sdk,
                seed=seed,
                as_json=as_json,
                allowances=allowances,
            )
    from chaos.cli.soak.runs import Soak

    soak = Soak(pairs, reports, times, jobs, keep == "all", settings, sdk, allowances)
    return _run(soak, drawn, drawn_by, times, reports, as_json=as_json)


def _refuse_contradictions(scenarios: tuple[str, ...], number: int | None, *, given_with_number: bool) -> None:
    if (number is None) == (not scenarios):
        raise click.UsageError("give scenarios, or --random for drawn ones")
    if number is not None and given_with_number:
        raise click.UsageError(
            "a drawn scenario has no variables, cells or code of its own: leave --set, --cell, --allow-checks and "
            "--allow-hook out"
        )


def _given(
    scenarios: tuple[str, ...], settings: dict[str, str], cells: tuple[str, ...]
) -> list[tuple[LoadedScenario, Cell]]:
    """Return the cells of the scenarios that the command line names."""
    from chaos.cli.scenarios import load, pick_cells

    return pick_cells([load(_not_piped(text), settings) for text in scenarios], cells)


def _drawn(
    number: int, seed: int, reports: Path, kinds: tuple[str, ...], mechanisms: tuple[str, ...], sdk: str
) -> list[DrawnScenario]:
    """Return the scenarios that the seed draws, kept in the reports directory."""
    from chaos.cli.soak.random_soak import draw_scenarios

    kinds = kinds or (DEFAULT_KIND,)
    return draw_scenarios(number, seed, directory=reports / "random", kinds=kinds, mechanisms=mechanisms, sdk=sdk)


def _run(soak: Soak, drawn: list[DrawnScenario], seed: int, times: int, reports: Path, *, as_json: bool) -> int:
    """Make the remaining runs, and show all results. Returns the exit code."""
    from chaos.cli.soak.random_soak import print_summary, summarise
    from chaos.cli.soak.report import exit_code, print_tallies

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
        print_tallies(tallies, times, reports)
    return codes.INTERRUPTED if interrupted else exit_code(tallies, times)


def _not_piped(text: str) -> str:
    """Return a scenario that every run can read again, and this command too when it goes on after an interruption."""
    if is_pipe(Path(text)):
        raise click.UsageError(f"{text} is a pipe, which gives its content once, and every run reads it: give a file")
    return text
