"""Prefixes that launchers, collectors of logs and terminals put before the line of a program.

``mpirun --tag-output`` writes ``[1,3]<stdout>:``, torchrun ``[default1]:`` with a local rank, PyTorch itself
``[rank1]: ``, ``srun --label`` ``3: ``, ``kubectl logs --timestamps`` a time, a container runtime the same with
``stdout F`` or a JSON object, syslog and journalctl time, host and program; a colour is put around the whole line.
Several may follow each other. They are removed, so that a line counts by the program's own text, and only if that text
begins here: further inside the line it is a quotation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

ESCAPE = "\x1b["
"""The beginning of every colour."""

WRAPPED = '{"log":"'
"""The beginning of a line that Docker has put into JSON."""

_SPEAKER = re.compile(r"\[rank(?P<rank>\d{1,9})\]:(?: (?=\S)|(?=\[[IWEF](?:\d{3,4})? )|(?=[VIWEC]\d{4} ))")
"""The mark of PyTorch in a process that has joined its process group, before an uncaught exception (with a space) and
before the lines of its own loggers. torchrun's tag may look the same, but has no space behind it."""

_COLOUR = re.compile(r"\x1b\[[0-9;:?]{0,40}[A-Za-z]")
_MOST = 4
"""Most prefixes before one line: of a cluster, of a host, of a launcher, and one more."""

_UTC = r"(?P<utc>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<fraction>\.\d{1,9})?(?P<zone>Z|[+-]\d\d:\d\d)"
_MONTH = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
_PREFIX = re.compile(
    rf"{_UTC} (?:(?:stdout|stderr) [FP] )?"
    rf"|{_MONTH} [\w.-]{{1,64}} [\w./-]{{1,64}}(?:\[\d{{1,10}}\])?: "
    rf"|[A-Z][a-z]{{2}} {_MONTH} \d{{4}}(?=\[)"
    r"|\[(?P<world>(?:[\w.@-]{1,64}[@,])?\d{1,9})\]<std(?:out|err)>: ?"
    r"|\[(?P<named>[A-Za-z_]{1,40}\d{1,9})\]: ?"
    r"|\[pod/[\w./-]{1,253}\] "
    r"|(?P<label> {0,8}\d{1,9}): (?=\S)"
    r"|\d{1,3}(?:\.\d{1,3}){3}: "
)
_TIME = re.compile(_UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Unprefixed:
    """A split line. ``tag`` is the launcher's name of the process, ``wall_ns`` the time of receipt by another.

    ``rank`` is the rank of the process as PyTorch has marked its line, None if it has not.
    """

    text: str
    tag: str | None = None
    wall_ns: int | None = None
    rank: int | None = None


def strip_launcher(line: str) -> Unprefixed:
    """Remove the prefixes of programs other than the writer, and colours anywhere in the line."""
    tag, wall_ns, rank = None, None, None
    if line.startswith(WRAPPED):
        line, wall_ns = _unwrap(line)
    text = _COLOUR.sub("", line) if ESCAPE in line else line
    at = 0
    for _ in range(_MOST):
        match = _PREFIX.match(text, at)
        if match is None:
            break
        speaker = _SPEAKER.match(text, at)
        rank = int(speaker["rank"]) if speaker else None
        at = match.end()
        named = match["world"] or match["named"] or match["label"]
        tag = named.strip() if named else tag
        wall_ns = _moment(match) if match["utc"] else wall_ns
    return Unprefixed(text[at:], tag, wall_ns, rank)


def _unwrap(line: str) -> tuple[str, int | None]:
    try:
        wrapped: Any = json.loads(line)
        text, time = wrapped["log"], _TIME.match(str(wrapped.get("time", "")))
        return text.removesuffix("\n").removesuffix("\r"), None if time is None else _moment(time)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return line, None


def _moment(match: re.Match[str]) -> int | None:
    """Return the nanoseconds of a time that includes its zone."""
    try:
        moment = datetime.fromisoformat(match["utc"] + match["zone"].replace("Z", "+00:00"))
    except ValueError:
        return None
    try:
        whole = int((moment - _EPOCH).total_seconds())
    except OverflowError:
        return None
    return whole * 1_000_000_000 + int((match["fraction"] or ".0")[1:].ljust(9, "0"))
