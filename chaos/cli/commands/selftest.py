"""``chaos selftest``: put defects into recoveries and see that the checks catch them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import echo_json, json_option

if TYPE_CHECKING:
    from chaos.selftest.defect import Defect
    from chaos.selftest.missing import LeftOut
    from chaos.selftest.session import Result

LAYERS = ("files", "SDK", "device layer", "job")
"""The layers of chaos.selftest.defect; written out here so that the help needs no import of it."""


@click.command("selftest", short_help="Put defects into recoveries; the checks must catch them.")
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only this defect, or all of this base; repeat it for more."
)
@click.option("--layer", type=click.Choice(LAYERS), help="Only the defects of this layer.")
@click.option("--list", "only_list", is_flag=True, help="List the defects. Runs nothing.")
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at the same time. Default: one for each core.")
@click.option(
    "--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep the spoilt runs in this directory."
)
@json_option
@debug_option
def command(
    only: tuple[str, ...], layer: str | None, only_list: bool, jobs: int | None, keep: Path | None, as_json: bool
) -> int:
    """Show that a pass can be believed: spoil good recoveries, one defect at a time, and judge them.

    Each defect names the check that must catch it and the reason that it must give. Defects of the layer `files` are
    put into copies of a good run; the others into the stand-in SDK, the device layer or the job while it runs. The good
    runs are made once, on MindSpore and PyTorch, and kept in the user's cache for as long as the code is the same.
    Without --only evidence is taken away from every good run, too, bit by bit: nothing may pass without it. Where other
    evidence shows the same, an event is an allowed gap of the runs that pass without it. A gap that its run no longer
    needs is stale. Where MindSpore or PyTorch is not installed, the defects of its jobs are left out and named; one
    that --only names is not.

    \b
    Examples:
      chaos selftest --list
      chaos selftest --layer files --json
      chaos selftest --only moments-zeroed --keep kept/
      chaos analyze kept/spoilt/moments-zeroed/ttp

    \b
    Exit codes: 0 every defect was caught for the right reason, 1 one was missed
    or caught for another reason, something passed without its evidence, or an
    allowed gap is stale, 2 one could not be run or did not act, 64 bad usage,
    130 interrupted.
    """
    from chaos.selftest.catalogue import catalogue

    defects = _chosen(catalogue(), only, layer)
    if only_list:
        _list(defects, as_json)
        return codes.PASS
    if keep is not None and keep.is_dir() and any(keep.iterdir()):
        raise click.UsageError(f"--keep {keep}: it is not empty; give a directory that is, or a new one")
    tried, left = (defects, ()) if only else _possible(defects)
    result = _run(tried, jobs or len(os.sched_getaffinity(0)), keep, evidence=not only)
    if as_json:
        echo_json({**result.to_json(), "left_out": [defect.name for group in left for defect in group.defects]})
    else:
        _print(result)
        for group in left:
            click.echo(_left_out(group))
    if result.good:
        return codes.PASS
    worse = any(row.outcome in ("missed", "wrong reason") for row in result.rows) or result.passed or result.stale
    return codes.FAIL if worse else codes.UNKNOWN


def _chosen(defects: Sequence[Defect], only: Sequence[str], layer: str | None) -> list[Defect]:
    """Return the requested defects. Raises click.UsageError for an unknown name, or where no defect is left."""
    names = {name for defect in defects for name in (defect.name, defect.base)}
    for name in only:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see chaos selftest --list"
            raise click.UsageError(f"no defect and no base {name!r}; {hint}")
    chosen = [
        defect
        for defect in defects
        if (not only or defect.name in only or defect.base in only) and (layer is None or defect.layer == layer)
    ]
    if not chosen:
        raise click.UsageError("there is no such defect; see chaos selftest --list")
    return chosen


def _possible(defects: Sequence[Defect]) -> tuple[Sequence[Defect], Sequence[LeftOut]]:
    """Return the defects that this machine can test, and those that it lacks a package for.

    Raises click.UsageError where none can be tested.
    """
    from chaos.doctor import has_module
    from chaos.selftest.missing import possible

    tried, left = possible(defects, has_module)
    if not tried:
        lacking = " and ".join(left[0].packages)
        raise click.UsageError(f"all of these defects need {lacking}, which is not installed; see chaos doctor")
    return tried, left


def _left_out(group: LeftOut) -> str:
    number, runs = len(group.defects), ", ".join(group.bases)
    lacking = " and ".join(group.packages)
    return f"left out: {number} defects in {len(group.bases)} good runs ({runs}), since {lacking} is not installed here"


def _list(defects: Sequence[Defect], as_json: bool) -> None:
    if as_json:
        keys = ("name", "what", "layer", "base", "check", "reason")
        echo_json([{key: getattr(defect, key) for key in keys} for defect in defects])
        return
    width = max(len(defect.name) for defect in defects)
    for defect in defects:
        click.echo(f"{defect.name:<{width}}  {defect.layer:<12}  {defect.check:<11}  {defect.what}")
    click.echo(f"{len(defects)} defects")


def _run(defects: Sequence[Defect], jobs: int, keep: Path | None, *, evidence: bool) -> Result:
    from chaos.cli.selftest_progress import open_watcher
    from chaos.selftest.base import BaseUnusable
    from chaos.selftest.session import run_selftest

    with ended_like_ctrl_c(), open_watcher(len(defects)) as watcher:
        try:
            return run_selftest(defects, jobs=jobs, keep=keep, evidence=evidence, watcher=watcher)
        except BaseUnusable as error:
            raise click.UsageError(str(error)) from error


def _print(result: Result) -> None:
    from contextlib import suppress

    from rich.console import Console

    from chaos.cli.streams import OutputLost
    from chaos.selftest.table import print_selftest

    # rich ends the process with 1, which would read as a result, when nobody reads its output.
    with suppress(OutputLost, BrokenPipeError, SystemExit):
        print_selftest(result, Console())
