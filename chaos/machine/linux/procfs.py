"""Reading /proc: bytes of the kernel in, facts about one process out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from chaos.machine.linux.masking import masked

PROC = Path("/proc")

_FORKNOEXEC = 0x40
"""PF_FORKNOEXEC of the kernel's include/linux/sched.h: set by a fork, cleared by execve(2)."""

_MASKS = (b"SigPnd", b"ShdPnd", b"SigIgn", b"SigCgt")


@dataclass(frozen=True)
class Stat:
    """The fields of /proc/PID/stat (proc(5)).

    ``start_time`` is in clock ticks since boot. ``exit_code`` is a wait status and holds only for a zombie. ``flags``
    are the kernel's.
    """

    pid: int
    comm: str
    state: str
    ppid: int
    session: int
    threads: int
    start_time: int
    exit_code: int
    flags: int = 0

    @property
    def forked(self) -> bool:
        """Whether it was forked and has executed no program since: command line and environment are another's."""
        return bool(self.flags & _FORKNOEXEC)

    @property
    def ended(self) -> bool:
        """Whether the process is a zombie. A process whose first thread alone has ended is none."""
        return self.state in "ZX" and self.threads <= 1


def parse_stat(text: bytes) -> Stat:
    """Parse a stat line. The name of a process may hold spaces, brackets and newlines, so the last bracket ends it."""
    before, _, after = text.rpartition(b")")
    pid, _, comm = before.partition(b" (")
    fields = after.split()
    if len(fields) < 20:
        raise ValueError(f"not a line of /proc/PID/stat: {text[:80]!r}")
    return Stat(
        pid=int(pid),
        comm=os.fsdecode(comm),
        state=fields[0].decode("ascii"),
        ppid=int(fields[1]),
        session=int(fields[3]),
        flags=int(fields[6]),
        threads=int(fields[17]),
        start_time=int(fields[19]),
        exit_code=int(fields[49]) if len(fields) > 49 else 0,
    )


def read_stat(pid: int, proc_root: Path = PROC) -> Stat | None:
    """Return the stat line of a process, None if there is no such process."""
    text = _read(pid, "stat", proc_root)
    return parse_stat(text) if text else None


@dataclass(frozen=True)
class Signals:
    """Signals of a process, by /proc/PID/status and those of its threads (proc(5)).

    ``pending`` are sent signals that no thread has taken yet.
    """

    caught: frozenset[int]
    ignored: frozenset[int]
    pending: frozenset[int]


def read_signals(pid: int, proc_root: Path = PROC) -> Signals | None:
    """Return a process's handling of signals, and the signals that still wait.

    None if there is no such process.
    """
    signals = _masks(_read(pid, "status", proc_root))
    if signals is None:
        return None
    pending = signals["ShdPnd"]
    try:
        threads = [task.name for task in (proc_root / str(pid) / "task").iterdir()]
    except OSError:
        return None
    for thread in threads:
        masks = _masks(_read(pid, f"task/{thread}/status", proc_root))
        pending |= masks["SigPnd"] if masks is not None else 0
    return Signals(_numbers(signals["SigCgt"]), _numbers(signals["SigIgn"]), _numbers(pending))


def kernel_lines(text: str) -> list[str]:
    """Return the lines of a file of the kernel. Only a newline ends a line: names may hold every other character.

    ``str.splitlines`` takes ten more characters for ends of lines, and reading as text takes a carriage return for one:
    so ``text`` must come from :func:`read_text` or :func:`lines_of`, which leave the characters as they are.
    """
    return text.removesuffix("\n").split("\n") if text else []


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file of the kernel that may hold names of any kind. Raises OSError."""
    return kernel_lines(os.fsdecode(path.read_bytes()))


def _masks(status: bytes | None) -> dict[str, int] | None:
    """Return the signal masks of a status file; None when it has none, as after the process's end."""
    lines = (line.partition(b":") for line in (status or b"").split(b"\n"))
    masks = {name.decode("ascii"): int(value, 16) for name, _, value in lines if name in _MASKS}
    return masks if len(masks) == len(_MASKS) else None


def _numbers(mask: int) -> frozenset[int]:
    return frozenset(number for number in range(1, 65) if mask >> (number - 1) & 1)


def environment(pid: int, proc_root: Path = PROC) -> dict[str, str] | None:
    """Return the environment that ``pid`` was started with.

    None if there is no such process, it is a zombie, or it belongs to another user. Entries without ``=`` are left out;
    of two entries with one name the first counts, as getenv(3) has it.
    """
    text = _read(pid, "environ", proc_root)
    if text is None:
        return None
    variables: dict[str, str] = {}
    for entry in text.split(b"\0"):
        name, sign, value = entry.partition(b"=")
        if sign and name:
            variables.setdefault(os.fsdecode(name), os.fsdecode(value))
    return variables


def living(proc_root: Path = PROC) -> Iterator[tuple[Stat, dict[str, str] | None]]:
    """Yield every process that has not ended, with the environment of its start as :func:`environment` has it.

    The environment is that of this very process: a process whose PID meant another one by then is left out.
    """
    for pid in all_pids(proc_root):
        before = read_stat(pid, proc_root)
        if before is None or before.ended:
            continue
        variables = environment(pid, proc_root)
        after = read_stat(pid, proc_root)
        if after is not None and after.start_time == before.start_time and not after.ended:
            yield after, variables


def command_line(pid: int, proc_root: Path = PROC) -> tuple[str, ...]:
    """Return the arguments of ``pid``, secrets masked, since they go into reports; empty if they cannot be read."""
    text = _read(pid, "cmdline", proc_root) or b""
    return masked([os.fsdecode(argument) for argument in text.removesuffix(b"\0").split(b"\0")]) if text else ()


def started_at(start_time: int) -> datetime:
    """Return a start time, in clock ticks since boot, as local time: to within a second, for people."""
    up = float((PROC / "uptime").read_text("ascii").split()[0])
    return datetime.fromtimestamp(time.time() - up + start_time / os.sysconf("SC_CLK_TCK")).astimezone()


def read_text(pid: int | str, name: str, proc_root: Path = PROC) -> str | None:
    """Return a file of a process (``self`` for this one) as text; None where it cannot be read."""
    text = _read(pid, name, proc_root)
    return None if text is None else os.fsdecode(text)


def cpu_seconds(pid: int, proc_root: Path = PROC) -> float | None:
    """Return the processor time of a process so far, in seconds; None if there is no such process."""
    text = _read(pid, "stat", proc_root)
    if not text:
        return None
    fields = text.rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class RunTimes:
    """How long a thread has had a processor, and how long it was ready to run and had none, in nanoseconds.

    ``turns`` is the number of times it was given a processor.
    """

    ran: int
    waited: int
    turns: int


def run_times(pid: int, proc_root: Path = PROC) -> dict[int, RunTimes]:
    """Return the times of each thread of a process from its start on, by the thread's ID."""
    place = proc_root / str(pid) / "task"
    try:
        threads = [int(name) for name in os.listdir(place)]  # noqa: PTH208 - names are wanted, and there may be very many
    except OSError:
        return {}
    times = {}
    for thread in threads:
        fields = (_read(pid, f"task/{thread}/schedstat", proc_root) or b"").split()
        if len(fields) > 2:
            times[thread] = RunTimes(*map(int, fields[:3]))
    return times


def busy_times(proc_root: Path = PROC) -> dict[int, int]:
    """Return how long each core has run anything since boot, in nanoseconds, by its number (/proc/stat, proc(5)).

    Empty where the kernel shows none.
    """
    return {core: sum(fields[:3]) + sum(fields[5:7]) for core, fields in _core_times(proc_root).items()}


def stolen_times(proc_root: Path = PROC) -> dict[int, int]:
    """Return how long the host of a virtual machine has withheld each core, in nanoseconds, by its number.

    Empty where the kernel shows none.
    """
    return {core: fields[7] for core, fields in _core_times(proc_root).items() if len(fields) > 7}


def _core_times(proc_root: Path) -> dict[int, list[int]]:
    """Return the fields of each core in /proc/stat, in nanoseconds."""
    nanoseconds = 10**9 // os.sysconf("SC_CLK_TCK")
    times: dict[int, list[int]] = {}
    try:
        lines = lines_of(proc_root / "stat")
    except OSError:
        return times
    for line in lines:
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu" and len(fields) > 6:
            times[int(name[3:])] = [int(field) * nanoseconds for field in fields]
    return times


def allowed_cores(pid: int, proc_root: Path = PROC) -> frozenset[int]:
    """Return the numbers of the cores that a process may run on (/proc/PID/status, proc(5)).

    None of them if there is no process.
    """
    for line in (_read(pid, "status", proc_root) or b"").split(b"\n"):
        name, _, listed = line.partition(b":")
        if name == b"Cpus_allowed_list":
            parts = [part.partition(b"-") for part in listed.strip().split(b",")]
            return frozenset(core for first, _, last in parts for core in range(int(first), int(last or first) + 1))
    return frozenset()


def resident_bytes(pid: int, proc_root: Path = PROC) -> int | None:
    """Return a process's resident memory in bytes; None if there is no such process."""
    text = _read(pid, "statm", proc_root)
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") if text else None


def all_pids(proc_root: Path = PROC) -> Iterator[int]:
    """Yield every process that /proc lists."""
    for name in os.listdir(proc_root):  # noqa: PTH208 - names are wanted, and there may be very many
        if name.isdecimal():
            yield int(name)


def _read(pid: int | str, name: str, proc_root: Path) -> bytes | None:
    try:
        return (proc_root / str(pid) / name).read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError):
        return None
