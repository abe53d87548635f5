"""``chaos logs``: the typed events of any log, and the lines that no reader knows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chaos.base.walking import Unseen, entries_below
from chaos.cli import codes
from chaos.cli.debug import debug_option

if TYPE_CHECKING:
    from chaos.observe.logs.log_event import LogEvent
    from chaos.observe.logs.reader import LogScan

_WIDTH = 100
_KEEP = 100_000
_LONGEST = 1000


@click.command("logs", short_help="Parse any log into events; list the lines no reader recognises.")
@click.argument(
    "paths", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, allow_dash=True, path_type=Path)
)
@click.option("--unknown", is_flag=True, help="Print the lines that no reader knows in place of the events.")
@click.option(
    "--kind", "kinds", multiple=True, metavar="KIND", help="Only these events: ttp.state, all of ttp, or error."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each event, and one for each file.")
@debug_option
def command(paths: tuple[Path, ...], unknown: bool, kinds: tuple[str, ...], as_json: bool) -> int:
    """Print the events that a log tells of: losses, checkpoints, errors, recoveries, what the cluster did.

    The content of a file chooses its reader, never its name. FILE may be a link, a pipe, or - for standard input. It
    may be a directory: all files below it are read, links there excepted. The last line of a file's events tells the
    reader, the events by kind and how many lines no reader knows. Ends with 64 when a file or a directory cannot be
    read. docs/reference/logs.md in the repository explains the kinds.

    \b
    Examples:
      chaos logs output/msrun_log/worker_0.log
      chaos logs ttp_log.log.30677 --kind ttp.state --kind ttp.renamed
      chaos logs output/msrun_log --unknown
      chaos logs worker_0.log --json
      kubectl logs POD | chaos logs -
    """
    from chaos.base.named_files import open_named
    from chaos.base.plain_files import open_plain
    from chaos.evidence.text import readable
    from chaos.observe.logs.reader import LogScan, read_log
    from chaos.observe.logs.registered import registered_readers

    readers = registered_readers()
    code = codes.PASS
    unseen: list[OSError] = []
    files = list(_files(paths, unseen.append))
    named = set(paths)
    for error in unseen:
        click.echo(f"chaos: {readable(str(error))}", err=True)
        code = codes.USAGE
    if not files:
        click.echo("no files", err=True)
    for path in files:
        scan = LogScan(keep=_KEEP if unknown else 0, width=_LONGEST)
        counts: Counter[str] = Counter()
        try:
            for event in read_log(path, readers, scan=scan, open_file=open_named if path in named else open_plain):
                counts[event.kind] += 1
                if not unknown and _is_selected(event.kind, kinds):
                    click.echo(_as_json(event) if as_json else _as_text(event))
        except OSError as error:
            click.echo(f"chaos: {readable(str(error))}", err=True)
            code = codes.USAGE
            continue
        for line in _ending(path, scan, counts, as_json=as_json):
            click.echo(line)
    return code


def _files(paths: Iterable[Path], unseen: Unseen) -> Iterator[Path]:
    for path in paths:
        yield from (
            (candidate for candidate in entries_below(path, unseen) if not candidate.is_dir())
            if path.is_dir()
            else (path,)
        )


def _is_selected(kind: str, kinds: tuple[str, ...]) -> bool:
    return not kinds or any(
        kind == selected or kind.startswith(f"{selected}.") or kind.endswith(f".{selected}") for selected in kinds
    )


def _as_text(event: LogEvent) -> str:
    from chaos.evidence.text import readable

    about = [f"rank {event.rank}"] if event.rank is not None else []
    about += [f"step {event.step}"] if event.step is not None else []
    about += [f"{name}={value}" for name, value in event.fields.items()]
    text = readable(" ".join(about)).replace("\n", " ")
    return f"{event.line:>7}  {_moment(event.wall_ns):<26}  {event.kind:<24}  {text[:_WIDTH]}"


def _moment(wall_ns: int | None) -> str:
    if wall_ns is None:
        return "-"
    seconds, rest = divmod(wall_ns, 1_000_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}.{rest // 1000:06d}"
    except (ValueError, OverflowError, OSError):
        return str(wall_ns)


def _as_json(event: LogEvent) -> str:
    fields = {name: _finite(value) for name, value in event.fields.items()}
    about = {"file": event.file, "line": event.line, "kind": event.kind, "wall_ns": event.wall_ns}
    return json.dumps(about | {"rank": event.rank, "step": event.step, "pid": event.pid, "fields": fields})


def _finite(value: Any) -> Any:
    """Return a value that JSON can hold: infinity and NaN, which JSON lacks, become their texts."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _ending(path: Path, scan: LogScan, counts: Counter[str], *, as_json: bool) -> Iterator[str]:
    """Yield the unknown lines, if they were kept, and a summary of the file."""
    from chaos.evidence.text import readable

    if as_json:
        yield from (json.dumps({"file": str(path), "line": number, "unknown": text}) for number, text in scan.samples)
        about = {"file": str(path), "reader": scan.reader, "lines": scan.lines, "events": scan.events}
        ending = {"unknown_lines": scan.unknown, "cut": scan.cut, "torn": scan.torn, "kinds": dict(counts)}
        yield json.dumps(about | ending)
        return
    yield from (f"{number:>7}  {readable(text)}" for number, text in scan.samples)
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    yield (
        f"{readable(str(path))}: reader {scan.reader or 'none'}; {scan.lines} lines, {scan.events} events"
        f"{f' ({kinds})' if kinds else ''}, {scan.unknown} unknown lines"
        f"{f', {scan.cut} cut' if scan.cut else ''}{', the last line breaks off' if scan.torn else ''}"
    )
