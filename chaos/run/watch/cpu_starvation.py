"""How long other work of the machine has kept the run's processes waiting for a processor, by the kernel's own count.

The work of a job takes longer there, and nothing of the job is to blame. Its own ranks always wait for each other where
there are more of them than processors; such a wait is no delay of this kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.job.processes import RUN_VARIABLE, claim_of
from chaos.machine.job.programs import starts_ranks
from chaos.machine.linux.procfs import (
    PROC,
    RunTimes,
    all_pids,
    allowed_cores,
    busy_times,
    command_line,
    environment,
    read_stat,
    run_times,
)

_SETTLED_NS = 5_000_000_000
"""A process is watched this long before it counts as foreign: between fork and exec it has another process's
environment. Foreign processes are then passed over, or each look would read the files of the whole machine."""

_LEAST = 0.05
"""Waiting for less than this share of the time between two looks is normal on every machine."""

_SPIN_NS = 20_000
"""A thread that always wants a processor and has it for less than this at a time only polls for work, and yields at
once: MindSpore's ActorThread and KernelThread do (4 us; observed on MindSpore 2.10), also in a rank that hangs. Its
waiting delays nothing."""


@dataclass(frozen=True)
class Waited:
    """Between ``since`` and ``until`` (nanoseconds of the monotonic clock) one thread has waited for foreign work.

    It has waited for ``seconds``, the longest of all threads. ``process`` names its process in words.
    """

    since: int
    until: int
    seconds: float
    process: str


@dataclass
class _Process:
    """A process of the run, and the times of each of its threads at the last look."""

    start_time: int
    threads: dict[int, RunTimes]


@dataclass(frozen=True)
class _Gained:
    """The running time of all threads of a process, and the wait of its longest-waiting thread, in nanoseconds."""

    ran: int
    waited: int


class WaitingTimes:
    """Looks repeatedly at this process and at the readable processes of one run on this machine.

    A process counts that carries CHAOS_RUN with the run's token, and every process that it has started.
    """

    def __init__(self, token: str, mono: Callable[[], int], proc_root: Path = PROC) -> None:
        self._token = token
        self._mono = mono
        self._proc = proc_root
        self._last = mono()
        self._busy = busy_times(proc_root)
        self._own = _Process(0, run_times(os.getpid(), proc_root))
        self._of_run: dict[int, _Process] = {}
        self._newcomers: dict[int, int] = {}

    def look(self) -> Waited | None:
        """Return the waiting since the last look; None where no thread has waited for a share that counts."""
        since, self._last = self._last, self._mono()
        before, self._busy = self._busy, busy_times(self._proc)
        self._forget()
        self._find()
        everybody = {os.getpid(): self._own, **self._of_run}
        gained = {pid: self._gained(pid, process, self._last - since) for pid, process in everybody.items()}
        pid = max(gained, key=lambda number: gained[number].waited)
        busy = sum(
            self._busy[core] - before.get(core, 0) for core in allowed_cores(pid, self._proc) if core in self._busy
        )
        strange = max(0, busy - sum(gain.ran for gain in gained.values()))
        longest = min(gained[pid].waited, self._last - since)  # a process that was found late has more
        seconds = round(longest * strange / busy / 1e9, 3) if busy else 0.0
        if seconds * 1e9 <= _LEAST * (self._last - since):
            return None
        return Waited(since, self._last, seconds, self._words(pid))

    def _forget(self) -> None:
        for pid, process in list(self._of_run.items()):
            stat = read_stat(pid, self._proc)
            if stat is None or stat.ended or stat.start_time != process.start_time:
                del self._of_run[pid]

    def _find(self) -> None:
        there = set(all_pids(self._proc))
        for pid in self._newcomers.keys() - there:
            del self._newcomers[pid]
        for pid in sorted(there - self._of_run.keys() - {os.getpid()}):
            if self._last - self._newcomers.setdefault(pid, self._last) > _SETTLED_NS:
                continue
            stat, variables = read_stat(pid, self._proc), environment(pid, self._proc) or {}
            if stat is None or stat.ended:
                continue
            if variables.get(RUN_VARIABLE) == self._token or stat.ppid in self._of_run:
                self._of_run[pid] = _Process(stat.start_time, {})
                del self._newcomers[pid]

    def _gained(self, pid: int, process: _Process, between: int) -> _Gained:
        """Return the process's running time since the look ``between`` nanoseconds ago, and its longest waiting."""
        before, process.threads = process.threads, run_times(pid, self._proc)
        nothing = RunTimes(0, 0, 0)
        gained = [_since(now, before.get(thread, nothing)) for thread, now in process.threads.items()]
        waits = (times.waited for times in gained if not _spins(times, between))
        return _Gained(sum(times.ran for times in gained), max(waits, default=0))

    def _words(self, pid: int) -> str:
        """Name the process; call it late, since a process has its parent's environment until it executes."""
        if pid == os.getpid():
            return f"the harness (process {pid})"
        role, rank = claim_of(environment(pid, self._proc) or {})
        launches = starts_ranks(command_line(pid, self._proc))
        if rank is None:
            who = "the scheduler" if role == "scheduler" else "the launcher" if launches else "a process of the run"
        else:
            who = f"rank {rank}"
        return f"{who} (process {pid})"


def _since(now: RunTimes, then: RunTimes) -> RunTimes:
    return RunTimes(now.ran - then.ran, now.waited - then.waited, now.turns - then.turns)


def _spins(gained: RunTimes, between: int) -> bool:
    return gained.ran < _SPIN_NS * gained.turns and gained.ran + gained.waited > between * 3 / 4
