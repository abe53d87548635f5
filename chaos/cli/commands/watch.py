"""``chaos watch``: follow a running job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import JOB_HELP, reports_option
from chaos.cli.paths import find_run

if TYPE_CHECKING:
    from chaos.attach.event import JobEvent
    from chaos.history.writer import HistoryWriter

_LOOK_SECONDS = 1.0


@click.command("watch", short_help="Follow a job that runs already, or a run.")
@click.argument("run", required=False, metavar="[RUN]", shell_complete=completion.runs)
@click.option("--job", "name", metavar="DIR|PID", help=JOB_HELP)
@reports_option
@click.option("--checkpoints", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where it saves.")
@click.option("--record", metavar="DIR", type=click.Path(path_type=Path), help="Record what is seen in DIR/history.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each thing that happens.")
@debug_option
def command(
    run: str | None, name: str | None, reports: Path, checkpoints: Path | None, record: Path | None, as_json: bool
) -> int:
    """Follow a job that runs already on this host, or a run of chaos, until it has ended or until Ctrl-C.

    RUN is a run that another terminal, a soak or CI makes: a directory, or a name in the reports directory. It is shown
    as `chaos run` shows it.

    A job has ended when no rank of it is left, its launcher has gone and 30 s have passed: all ranks may be started
    again.

    For a job it shows the ranks and their states, the steps and losses of their logs, deaths and new processes of a
    rank, what MindSpore, MindIO TFT and msrun log of a recovery, and checkpoints that appear. The job is left as it is;
    nothing is written but what --record asks for. On a terminal it is a table, elsewhere lines.

    \b
    Examples:
      chaos watch latest
      chaos watch --job output/msrun_log
      chaos watch --job 4711 --json
      chaos watch --job output/msrun_log --record seen/

    \b
    Exit codes: 0 it has ended, 64 no such job or run, 130 Ctrl-C. Whether it
    ended well is not judged.
    """
    if (run is None) == (name is None):
        raise click.UsageError("name a run, or a job with --job")
    if run is not None:
        if checkpoints is not None or record is not None:
            raise click.UsageError("--checkpoints and --record are for a job: a run has its own record")
        from chaos.cli.watch.run import watch_run

        with ended_like_ctrl_c():  # a display gives the cursor back when it is closed
            watch_run(find_run(run, reports), sys.stdout, as_json=as_json)
        return codes.PASS
    with ended_like_ctrl_c():
        return _watch_job(name or "", checkpoints, record, as_json=as_json)


def _watch_job(name: str, checkpoints: Path | None, record: Path | None, *, as_json: bool) -> int:
    from chaos.attach.watching import Watch
    from chaos.base.clock import SYSTEM_CLOCK
    from chaos.cli.watch.view import open_view
    from chaos.evidence.text import readable
    from chaos.jobs.kind import JobError
    from chaos.observe.logs.registered import registered_readers

    try:
        watch = Watch(name, here=Path.cwd(), readers=registered_readers(), checkpoints=checkpoints)
    except JobError as error:
        raise click.UsageError(readable(str(error))) from error
    try:
        with _recorded(record) as history, open_view(watch, sys.stdout, as_json=as_json) as view:
            while not watch.ended:
                for event in watch.look():
                    view.show(event)
                    _record(history, event)
                view.end_look()
                if not watch.ended:
                    SYSTEM_CLOCK.sleep(_LOOK_SECONDS)
    finally:
        watch.close()
    return codes.PASS


@contextmanager
def _recorded(directory: Path | None) -> Iterator[HistoryWriter | None]:
    """Yield the history of the watch, in its own directory."""
    if directory is None:
        yield None
        return
    from chaos.base.clock import SYSTEM_CLOCK
    from chaos.history.writer import HistoryWriteError, HistoryWriter

    try:
        (directory / "history").mkdir(parents=True, exist_ok=True)
        history = HistoryWriter(
            directory / "history" / "watch.jsonl", writer="watch", run=directory.name, clock=SYSTEM_CLOCK
        )
    except (OSError, HistoryWriteError) as error:
        raise click.UsageError(f"--record {directory}: {error}") from error
    with history:
        yield history


def _record(history: HistoryWriter | None, event: JobEvent) -> None:
    from chaos.cli.watch.view import finite

    if history is not None:
        about = {"seen_wall": event.wall_ns, "before": event.before}
        history.record(event.event, attempt="watched", rank=event.rank, pid=event.pid, **about, **finite(event.data))
