"""Log readers: the choice of one for a file, and reading a file with them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path

from chaos.base.plain_files import open_plain
from chaos.observe.logs.device_log import DeviceLogReader
from chaos.observe.logs.error_line import ErrorLineReader
from chaos.observe.logs.launcher_prefix import Unprefixed, strip_launcher
from chaos.observe.logs.lines import LINE_LIMIT, LineSplitter
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.mindformers_log import PROGRESS, STEP, MindFormersLogReader
from chaos.observe.logs.mindspore_log import MindSporeLogReader
from chaos.observe.logs.msrun_log import NODE_RANK, MsrunLogReader
from chaos.observe.logs.quoted_log import QuotedLogReader
from chaos.observe.logs.records import TORN, is_repeated, split_records
from chaos.observe.logs.taskd_log import TaskdLogReader
from chaos.observe.logs.torch.megatron_log import MegatronLogReader
from chaos.observe.logs.torch.mindspeed_log import MindSpeedLogReader
from chaos.observe.logs.torch.rank_log import TorchRankLogReader
from chaos.observe.logs.torch.script_log import LOSS, ScriptLogReader
from chaos.observe.logs.torch.torchrun_log import TorchrunLogReader
from chaos.observe.logs.ttp.log import TtpLogReader

CHUNK = 1 << 20
_HEAD_LINES = 50
_PID_SUFFIX = re.compile(r"\.log\.(\d{1,10})$")
# Of these a number at the end says how often the log was put aside when it was full.
_TURNED_OVER = re.compile(r"(?:debug|info|warning|error|worker_\d{1,9}(?:\.before-\d{1,9})?|scheduler)\.log\.\d{1,9}")
_RANK_NAME = re.compile(r"worker_(\d{1,9})(?:\.before-\d{1,9})?\.log(?:\.\d{1,9})?")
_RANK_DIRECTORY = re.compile(r"rank_(\d{1,9})")


@dataclass
class LogScan:
    """The result of reading a log, besides the events.

    ``reader`` is the name of the reader that recognised the content, None if none did. ``unknown`` counts the lines
    that no reader knows, blank ones not included; the first ``keep`` of them are in ``samples`` with their line
    numbers, up to ``width`` characters of each. ``cut`` counts lines over the limit. ``torn``: the file ends inside a
    line, which was not read.
    """

    lines: int = 0
    events: int = 0
    unknown: int = 0
    cut: int = 0
    torn: bool = False
    reader: str | None = None
    keep: int = 20
    width: int = 200
    samples: list[tuple[int, str]] = field(default_factory=list)


def built_in_readers(tz: tzinfo | None = None) -> list[LogReader]:
    """Return the readers of this package. ``tz`` is the zone of the logs' machine, None this machine's."""
    return [
        TtpLogReader(tz),
        TaskdLogReader(tz),
        TorchrunLogReader(tz),
        TorchRankLogReader(tz),
        MegatronLogReader(tz),
        MindSpeedLogReader(tz),
        MsrunLogReader(tz),
        MindFormersLogReader(tz),
        DeviceLogReader(tz),
        MindSporeLogReader(tz),
        ScriptLogReader(tz),
        QuotedLogReader(),
        ErrorLineReader(tz),
    ]


def choose_reader(first_lines: Sequence[str], readers: Sequence[LogReader]) -> LogReader | None:
    """Return the first reader that recognises the content, or None. The name of a file decides nothing."""
    first_lines = [split_records(strip_launcher(line).text)[-1] for line in first_lines]
    ordered = sorted(readers, key=lambda reader: (reader.only_when_chosen, reader.asked_last))
    return next((reader for reader in ordered if reader.recognises(first_lines)), None)


def in_order(first: LogReader | None, readers: Sequence[LogReader]) -> list[LogReader]:
    """Return the readers for a log, in the order in which they are asked. ``first`` is the chosen one."""
    before = [] if first is None or first.asked_last else [first]
    others = [reader for reader in readers if reader not in before and not reader.only_when_chosen]
    return [*before, *sorted(others, key=lambda reader: reader.asked_last)]


def read_log(
    path: Path,
    readers: Sequence[LogReader],
    *,
    scan: LogScan | None = None,
    name: str | None = None,
    line_limit: int = LINE_LIMIT,
    open_file: Callable[[Path], io.BufferedReader] = open_plain,
) -> Iterator[LogEvent]:
    """Yield the events of one file, in its order, read in chunks.

    The reader that recognises the content is asked first, then the others: a worker's log mixes the framework's lines
    with those of the SDK when TTP_LOG_STDOUT is set. ``scan`` is filled as the reading goes on. ``name`` is what the
    events give as their file, by default the path. ``line_limit`` is in bytes. Two names are hints, for lines without a
    process or rank: a ``.log.<pid>`` at the end is the process; ``worker_3.log`` (msrun), ``rank_3/`` (MindFormers' own
    files) and ``rank_3/logs/`` (MindSpore's) is the rank that writes, until the log names another that the cluster has
    assigned: msrun may count on each node anew. ``open_file`` decides what may be read; by default plain files only.
    Raises OSError when the file cannot be read.
    """
    scan = LogScan() if scan is None else scan
    suffix = None if _TURNED_OVER.fullmatch(path.name) else _PID_SUFFIX.search(path.name)
    pid = int(suffix[1]) if suffix else None
    rank = _rank_of(path)
    cluster_ranks: dict[int, int] = {}
    file = str(path) if name is None else name
    splitter = LineSplitter(line_limit)
    with open_file(path) as stream:
        chunk = _head(stream)
        first = choose_reader(LineSplitter(line_limit).feed(chunk)[:_HEAD_LINES], readers)
        scan.reader = first.name if first else None
        ordered = in_order(first, readers)
        while chunk:
            begin = splitter.lines + 1
            for number, line in enumerate(splitter.feed(chunk), begin):
                for event, is_own in _read_line(ordered, line, number, scan):
                    if event.kind == NODE_RANK and event.rank is not None and event.pid is not None:
                        cluster_ranks[event.pid] = event.rank
                    event_rank = (
                        _own_rank(rank, cluster_ranks, event.pid) if is_own and event.rank is None else event.rank
                    )
                    yield replace(
                        event, file=file, line=number, pid=pid if event.pid is None else event.pid, rank=event_rank
                    )
            scan.lines, scan.cut, scan.torn = splitter.lines, splitter.cut, splitter.torn
            chunk = stream.read1(CHUNK)
    if scan.torn and (last := _read_unended(ordered, splitter.rest, scan)) is not None:
        yield replace(last, file=file, line=scan.lines, rank=rank if last.rank is None else last.rank)


def _head(stream: io.BufferedReader) -> bytes:
    """Return the beginning of a log: as many lines as choose its reader, in however small pieces a pipe gives them."""
    head = b""
    while len(head) < CHUNK and head.count(b"\n") < _HEAD_LINES and (more := stream.read1(CHUNK - len(head))):
        head += more
    return head


def _read_unended(readers: Sequence[LogReader], line: str, scan: LogScan) -> LogEvent | None:
    """Return the event of a last line without a line feed, if its form shows that it is whole."""
    for reader in readers:
        event = reader.read_unended(line)
        if event is not None:
            scan.lines, scan.events, scan.torn = scan.lines + 1, scan.events + 1, False
            scan.reader = scan.reader or reader.name
            return event
    return None


def _rank_of(path: Path) -> int | None:
    """Return the rank in the name of the file that it writes; None without one."""
    directory = path.parent.parent if path.parent.name == "logs" else path.parent
    match = _RANK_NAME.fullmatch(path.name) or _RANK_DIRECTORY.fullmatch(directory.name)
    return int(match[1]) if match else None


def _own_rank(named: int | None, cluster_ranks: Mapping[int, int], pid: int | None) -> int | None:
    """Return the rank that writes a line: as the cluster assigned it to the process, else as in the name of the file.

    ``cluster_ranks`` is by process. A log without a rank in its name may be of several.
    """
    if named is None:
        return None
    if pid is not None and pid in cluster_ranks:
        return cluster_ranks[pid]
    ranks = set(cluster_ranks.values())
    return ranks.pop() if pid is None and len(ranks) == 1 else named


def read_line(readers: Sequence[LogReader], line: str) -> list[tuple[LogEvent, bool]]:
    """Return the events of a line, each with whether its reader reads a rank's own statements.

    A launcher's prefix is removed (:mod:`chaos.observe.logs.launcher_prefix`). The rest is one event at
    most, unless a record begins inside the line (:mod:`chaos.observe.logs.records`): then each part is read, the
    numbers at the end of a step only if they are whole. A record that merely quotes another is one.
    """
    unprefixed = strip_launcher(line)
    if is_repeated(unprefixed.text):
        return []
    events = _read_records(readers, unprefixed.text, unprefixed.rank)
    if unprefixed.tag is None and unprefixed.wall_ns is None:
        return events
    return [(_by_launcher(event, unprefixed), is_own) for event, is_own in events]


def _by_launcher(event: LogEvent, unprefixed: Unprefixed) -> LogEvent:
    """Return the event with the tag of the process, and with the time of a launcher or a cluster if it has none."""
    fields = event.fields if unprefixed.tag is None else {**event.fields, "tag_text": unprefixed.tag}
    return replace(event, fields=fields, wall_ns=unprefixed.wall_ns if event.wall_ns is None else event.wall_ns)


def _read_records(readers: Sequence[LogReader], line: str, rank: int | None) -> list[tuple[LogEvent, bool]]:
    *before, last = split_records(line)
    if not before:
        only = _read(readers, line, rank)
        return [] if only is None else [only]
    knowing = [reader for reader in readers if not reader.asked_last]
    events = [*(_read_cut(knowing, part) for part in before), _read(knowing, last)]
    whole = None if any(events) else _read(knowing, line)
    if whole is not None and whole[0].kind not in (STEP, PROGRESS):
        return [whole]
    left = [reader for reader in readers if reader.asked_last]
    rest = (*(_read_cut(left, part) for part in before), _read(left, last))
    every = (event or other for event, other in zip(events, rest, strict=True))
    return [event for event in every if event is not None]


def _read_cut(readers: Sequence[LogReader], part: str) -> tuple[LogEvent, bool] | None:
    """Return the event of a part of a line that breaks off: without a number at its end, which may be cut."""
    result = _read(readers, part)
    is_cut = result is not None and result[0].kind in (STEP, LOSS)
    return _read(readers, part + TORN) if is_cut else result


def _read(readers: Sequence[LogReader], line: str, rank: int | None = None) -> tuple[LogEvent, bool] | None:
    for reader in readers:
        event = reader.read(line) if rank is None else reader.read_of(line, rank)
        if event is not None:
            return event, reader.own_rank
    return None


def _read_line(readers: Sequence[LogReader], line: str, number: int, scan: LogScan) -> list[tuple[LogEvent, bool]]:
    events = read_line(readers, line)
    scan.events += len(events)
    if not events and line.strip():
        scan.unknown += 1
        if len(scan.samples) < scan.keep:
            scan.samples.append((number, line[: scan.width]))
    return events
