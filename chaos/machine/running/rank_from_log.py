"""The rank that MindSpore has given a process, by the process's own log, where its launcher has given it no number."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path, PurePath
from zoneinfo import ZoneInfo

from chaos.machine.linux.procfs import PROC, started_at
from chaos.machine.running.outputs import Output, outputs_of

# [WARNING] DISTRIBUTED(5919,7fb1,python):2026-11-21-06:03:17.689.115 […:428] PostProcess] This node 0 rank id: 0
_RANK_LINE = re.compile(
    rb"^\[[A-Z]+\] \w+\((\d{1,10})[,:][^)]{0,200}\):(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d)\b"
    rb".{0,600}\] This node \S{1,200} rank id: (\d{1,9})\s*$"
)

_LOOKED_AT = 4 * 2**20
"""Bytes of a log: MindSpore logs the rank while it builds the cluster, before training starts."""
_LINE = 4096

_FIXED = re.compile(r"[A-Za-z]{3,10}([+-]?(?:1?\d|2[0-3]))")
"""A TZ that names no file: the hours to add to the local time for UTC, as in ``CST-8`` (tzset(3))."""
_UNSURE = timedelta(seconds=1)
"""Uncertainty of a process's start time. MindSpore has to be loaded before the process logs its rank."""


def rank_from_log(
    pid: int, own_pids: Container[int], start_time: int, variables: Mapping[str, str], proc_root: Path = PROC
) -> int | None:
    """Return the rank, None where no log gives it for this very process, or several give different ones.

    ``own_pids`` are the PIDs that the process has, also in its container: the line must name one, since a log may hold
    lines of an earlier launch or of another rank. In a restarted container they have the same PIDs, so the line must
    also be from after ``start_time``, in clock ticks since boot, in the time zone of the process.
    """
    ranks: set[int] = set()
    zone = _zone(pid, variables, proc_root)
    since = started_at(start_time) - _UNSURE
    for output in outputs_of(pid, proc_root):
        ranks |= _ranks_in(output, own_pids, since, zone)
    return ranks.pop() if len(ranks) == 1 else None


def _ranks_in(output: Output, own_pids: Container[int], since: datetime, zone: tzinfo | None) -> set[int]:
    ranks = set()
    try:
        with output.open() as stream:
            while stream.tell() < _LOOKED_AT and (line := stream.readline(_LINE)):
                match = _RANK_LINE.match(line)
                if match is not None and int(match[1]) in own_pids and _is_since(match[2].decode("ascii"), since, zone):
                    ranks.add(int(match[3]))
    except OSError:  # the process has ended
        return set()
    return ranks


def _is_since(time: str, since: datetime, zone: tzinfo | None) -> bool:
    try:
        written = datetime.strptime(time, "%Y-%m-%d-%H:%M:%S")
        return (written.astimezone() if zone is None else written.replace(tzinfo=zone)) >= since
    except (ValueError, OverflowError):
        return False


def _zone(pid: int, variables: Mapping[str, str], proc_root: Path) -> tzinfo | None:
    """Return a process's time zone: by TZ, or by /etc/localtime as it sees it; UTC where that is no file (tzset(3)).

    None where it cannot be read: then it is taken to be that of this process.
    """
    root = proc_root / str(pid) / "root"
    name = variables.get("TZ")
    if name is not None:
        if (fixed := _FIXED.fullmatch(name)) is not None:
            return timezone(-timedelta(hours=int(fixed[1])))
        name = name.removeprefix(":")
        path = PurePath(name) if name.startswith("/") else PurePath("/usr/share/zoneinfo", name or "UTC")
    else:
        path = PurePath("/etc/localtime")
    for _ in range(8):  # links of a container lead into the container
        inside = root / path.relative_to(path.anchor)
        try:
            path = PurePath(os.path.normpath(path.parent / inside.readlink()))
        except OSError:
            break
    try:
        descriptor = os.open(inside, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return ZoneInfo.from_file(file) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except FileNotFoundError:
        return timezone.utc
    except (OSError, ValueError):
        return None
