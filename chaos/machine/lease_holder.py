"""The holder of a lease: a record beside its lock, for processes that have to wait.

The lock alone decides who holds the lease. The record only tells a person whom to ask, so it counts only while the
process that it names lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.machine.linux.process import ProcessIdentity, has_ended, identify, state
from chaos.machine.linux.procfs import command_line

_LONGEST = 1 << 16
_LONGEST_COMMAND = 200


@dataclass(frozen=True)
class Holder:
    """The process that holds a lease.

    ``since`` is the time of day, in seconds; ``run`` is empty until the process has a run.
    """

    pid: int
    start_time: int
    boot: str
    user: str
    command: str
    since: float
    run: str = ""

    @property
    def lives(self) -> bool:
        """Whether that very process still runs."""
        return not has_ended(state(ProcessIdentity(self.pid, self.start_time, self.boot)))


def this_holder() -> Holder:
    """Return this process as a holder from now on."""
    process = identify(os.getpid())
    command = " ".join(" ".join(command_line(process.pid)).split())  # a script behind -c has lines
    return Holder(process.pid, process.start_time, process.boot, _user(), command, time.time())


def write_holder(path: Path, holder: Holder) -> None:
    """Write the record. The lease holds even where the disk has no room for the record."""
    write_record(path, asdict(holder))


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record in one step, where the disk has room for it."""
    fresh = path.with_name(f"{path.name}.new")
    with contextlib.suppress(OSError):
        fresh.write_text(json.dumps(record), "utf-8")
        fresh.replace(path)


def read_holder(path: Path) -> Holder | None:
    """Return the process that holds this record's lease; None where the record names no living process."""
    try:
        record: Any = json.loads(read_plain(path, _LONGEST))
        holder = Holder(**record)
        return holder if holder.lives else None
    except (OSError, ValueError, TypeError):
        return None


def in_words(kind: str, holders: Mapping[int, Holder | None], now: float) -> str:
    """Return a sentence: who holds which of the numbers, since when, and how to go on."""
    by_holder: dict[Holder | None, list[int]] = {}
    for number, holder in holders.items():
        by_holder.setdefault(None if holder is None else holder, []).append(number)
    held = "; ".join(_held_by(kind, numbers, holder, now) for holder, numbers in by_holder.items())
    pids = sorted({holder.pid for holder in by_holder if holder is not None})
    end = f", or end a run in order: {' or '.join(f'kill -INT {pid}' for pid in pids)}" if pids else ""
    return (
        f"every {kind} that would do is leased to another job on this host: {held}. This run starts when one is free. "
        f"To go on sooner, let fewer runs go at a time (--jobs of chaos soak, -n of pytest){end}"
    )


def _held_by(kind: str, numbers: Sequence[int], holder: Holder | None, now: float) -> str:
    which = f"{kind}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    if holder is None:
        return f"{which} by a process that has left no record here: of another user, or of an earlier version"
    clock = time.strftime("%H:%M:%S", time.localtime(holder.since))
    run = f", run {holder.run}" if holder.run else ""
    command = holder.command if len(holder.command) <= _LONGEST_COMMAND else f"{holder.command[:_LONGEST_COMMAND]}…"
    since = f"since {clock} ({_duration(now - holder.since)})"
    return f"{which} by process {holder.pid} of user {holder.user} {since}: {command}{run}"


def _duration(seconds: float) -> str:
    minutes = int(max(0.0, seconds)) // 60
    return f"{minutes} min" if minutes else f"{int(max(0.0, seconds))} s"


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
