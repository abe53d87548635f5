"""``chaos analyze``: reproduce the verdict of a run from its files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import all_option, echo_json, json_option, reports_option
from chaos.cli.paths import find_run


@click.command("analyze", short_help="Judge a run again from its files.")
@click.argument("run", default="latest", metavar="[RUN]", shell_complete=completion.runs)
@click.option("--unbounded", is_flag=True, help="Read the whole run, whatever its size and however long it takes.")
@all_option
@reports_option
@json_option
@debug_option
def command(run: str, unbounded: bool, everything: bool, reports: Path, as_json: bool) -> int:
    """Judge a run again from its files: plan, history, logs, checkpoints. Needs neither the job nor MindSpore.

    RUN is a directory, or a name in the reports directory; by default the last run. Writes result.json and junit.xml
    there; report.html and the row in the store of runs are renewed where there are any. At most 32 GiB of it are read
    in all, 1 GiB of files that are mostly holes, and 500,000 files: a check that would need more is unknown, and says
    so. Of a run that does not pass it prints what broke first and how many statements follow from that; --all prints
    those too.

    \b
    Examples:
      chaos analyze
      chaos analyze --all
      chaos analyze /copied/from/elsewhere/reports/kill-rank-1 --json
    """
    directory = find_run(run, reports)
    from chaos.store.directory import ADOPTED, INJECTED_FILE, RunDirectoryError, read_run

    with suppress(RunDirectoryError):
        if ADOPTED in read_run(directory):
            raise click.UsageError(
                f"{directory.name} records a fault in a job that was already running: nothing was planned, so there "
                f"is no verdict; its outcome is in {directory / INJECTED_FILE}"
            )
    from chaos.checks.judge import RunUnreadable
    from chaos.report.analyze import analyze
    from chaos.report.short import PAGE
    from chaos.trends.runs import renew_run

    try:
        result = analyze(directory, bounded=not unbounded, page=_tell if (directory / PAGE).exists() else None)
    except RunUnreadable as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        click.echo(f"chaos: the reports of {directory} cannot be written: {error}", err=True)
        return codes.HARNESS
    for sentence in renew_run(directory.parent, directory):
        _tell(sentence)
    if as_json:
        echo_json(result.to_json())
    else:
        from chaos.cli.show import show

        show(result, directory, everything=everything)
    return codes.of_verdict(result.verdict)


def _tell(sentence: str) -> None:
    from chaos.scenario.errors import printable

    click.echo(f"chaos: {printable(sentence)}", err=True)
