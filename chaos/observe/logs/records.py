"""Beginnings of records inside a line.

A writer that was killed, or found no space, leaves half a record without a line feed, and the restarted process
writes on behind it. A progress bar may stand there, too. So the text before a record is no whole line, and
never gives the record its time. A record behind a quotation mark is quoted by the line.
"""

from __future__ import annotations

import re

TORN = "\ufffd"
"""Put behind the cut part of a line, so that no number at its end is taken for a whole one."""

_RECORD = re.compile(
    r"(?<![\"'`\u201c])(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d{3} - "
    r"|\.\d{6} (?:\d{1,10} [a-z]{1,10}|[a-z]{1,10} \d{1,10}) (?:\[\d{1,20}\]){0,3}\[(?:TTP|PYH|ACC) )"
    r"|\[(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|EXCEPTION|FATAL|TRACE|EVENT)\] {1,8}"
    r"(?:\d{4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d[,.]\d{3}|\w{2,21}\(-?\d{1,10}[^)]{0,200}\):\d{4}-\d\d-\d\d-\d\d:)"
    r"|[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d{1,20} [^\]\s]{0,400}?torch/distributed/[^\]\s]{1,200}:\d{1,7}\] )"
)
# What msrun of some versions prints at the end: the errors in the workers' logs, found by grep.
_REPEATED = re.compile(r"(?:\S{1,4000}/)?(?:worker_\d{1,9}|scheduler)\.log[:-]\d{1,9}[:-]")


def split_records(line: str) -> tuple[str, ...]:
    """Return the parts of a line: the text before a record, and each record. Nearly every line has one part."""
    record = _RECORD.search(line, 1)
    if record is None:
        return (line,)
    begins = [0]
    while record is not None:
        begins.append(record.start())
        record = _RECORD.search(line, record.start() + 1)
    return tuple(line[begin:end] for begin, end in zip(begins, [*begins[1:], len(line)], strict=True))


def is_repeated(line: str) -> bool:
    """Return whether the line repeats a line of another log, which has it anyway."""
    return _REPEATED.match(line) is not None
