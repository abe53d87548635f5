"""``chaos heal``: undo the faults that a run has left behind when the harness itself was killed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option, reports_option
from chaos.cli.paths import find_run
from chaos.cli.trusting import chosen
from chaos.scenario.errors import printable

if TYPE_CHECKING:
    from chaos.heal.heal_report import HealReport


_IN_PART = "REFUSED in part: what is not proven to belong to this user, and is not listed as done, was left untouched"
_MOST = 100
_LONGEST = 1000


@click.command("heal", short_help="Undo what an interrupted run has left behind.")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=completion.runs)
@click.option("--all", "everything", is_flag=True, help="Every run in the reports directory: the default without RUN.")
@click.option("--trust", is_flag=True, help="Confirm, step by step, what is not proven to belong to this user.")
@click.option("--trust-step", "steps", multiple=True, metavar="ID", help="With --trust: do this step; repeat it.")
@click.option(
    "--inventory",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --trust: your inventory; it must list the hosts of each step.",
)
@reports_option
@json_option
@debug_option
def command(
    runs: tuple[str, ...],
    everything: bool,
    trust: bool,
    steps: tuple[str, ...],
    inventory: Path | None,
    reports: Path,
    as_json: bool,
) -> int:
    """End the processes that a killed harness has left, and undo its faults, the latest first.

    RUN is a directory, or a name in the reports directory; without one, every run there that has left something. It
    can be repeated at any time. A run that is still going on is never touched. Ends with 3 when something could not be
    put back; naming a run that is still going on counts as that, and so does naming a copy of a run's directory: what
    it tells of is that of the original.

    What does not carry the proof that this user's chaos has made it on this machine is refused, and what would be done
    is shown. With RUN --trust each such step is shown and asked for on a terminal; without one, only those are done
    that --trust-step names. No program, key file or kubeconfig that a ledger names is ever used so.

    \b
    Examples:
      chaos heal
      chaos heal kill-rank-20250101-120000-1a2b
      chaos heal copied/kill-rank-1a2b --trust --trust-step private-directory
    """
    if runs and everything:
        raise click.UsageError("give runs or --all, not both")
    if (steps or inventory is not None) and not trust:
        raise click.UsageError("--trust-step and --inventory are for --trust")
    if trust and (len(runs) != 1 or everything):
        raise click.UsageError("--trust is for one run at a time: give its directory")
    from chaos.heal.heal import heal_all, heal_run
    from chaos.heal.tidying import runs_in

    if trust:
        reported = [chosen(find_run(runs[0], reports), steps, inventory, ask=not as_json)]
    else:
        reported = [heal_run(find_run(run, reports)) for run in runs] if runs else heal_all(reports)
    looked_at = len(runs or runs_in(reports))
    failed = [
        report for report in reported if report.failed or report.refused or (runs and (report.live or report.copy))
    ]
    if as_json:
        healed = [_plain(report) for report in reported]
        echo_json({"schema_version": 1, "healed": not failed, "looked_at": looked_at, "runs": healed})
    else:
        for report in reported:
            _print(report)
        if not looked_at:
            hint = "" if reports.is_dir() else ": there is no such directory"
            click.echo(f"no run found below {reports}{hint}; for runs kept elsewhere give --reports")
        elif not reported:
            click.echo(f"nothing to heal in {reports}")
    return codes.HARNESS if failed else codes.PASS


def _plain(report: HealReport) -> dict[str, object]:
    return {
        "run": report.run,
        "outcome": report.outcome,
        "found": report.leftovers,
        "done": report.done,
        "failed": report.failed,
        "refused": report.refused,
        "would": report.proposed,
    }


def _print(report: HealReport) -> None:
    words = {
        "nothing": "nothing was left",
        "healed": "healed",
        "failed": "NOT everything was undone",
        "refused": "REFUSED: what is not proven to belong to this user was left untouched",
        "copy": "a copy of another directory, not touched",
        "live": "still going on, not touched; stop its harness (Ctrl-C) first",
    }
    heading = _IN_PART if report.outcome == "refused" and report.done else words[report.outcome]
    click.echo(f"{printable(report.run)}: {heading}")
    sections = {"found": report.leftovers, "done": report.done, "failed": report.failed, "why": report.refused}
    for mark, texts in {**sections, "would": report.proposed}.items():
        for text in texts[:_MOST]:
            click.echo(f"  {mark:<6}  {_shown(text)}")
        if len(texts) > _MOST:
            click.echo(f"  {mark:<6}  {len(texts) - _MOST} more: chaos heal --json names them")
    if report.refused:
        by_hand = f"chaos heal {report.path} --trust"
        click.echo(f"  {'next':<6}  if you know what the lines above do, {by_hand} goes through them with you")
        click.echo(f"  {'':<6}  (docs/design/security.md in the repository); on the machine, and as the user, that")
        click.echo(f"  {'':<6}  made it: chaos heal")
    if report.failed:
        again = report.again or f"chaos heal {report.path}"
        click.echo(f"  {'next':<6}  fix what the lines above name, then: {again}")


def _shown(text: str) -> str:
    """Return a text without characters that a terminal would obey, and of limited length: it may be anybody's."""
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
