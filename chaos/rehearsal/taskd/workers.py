"""The ranks' processes, by the four functions that msrun hands over. They are called from one thread only."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from chaos.base.growth import Growing, in_words
from chaos.base.rank_sets import rank_set

FUNCTIONS = ("KILL_WORKER", "START_ALL_WORKER", "START_WORKER_LIST", "MONITOR")

ALL = -1
_END_SECONDS = 30.0
_EACH_ENDS = 0.5
_POLL_SECONDS = 0.01


class WorkerError(RuntimeError):
    """msrun could not carry out a request. The text names the ranks."""


@dataclass(frozen=True)
class Worker:
    """One rank's process as MONITOR shows it: ``status`` None while it runs, 0 done, anything else dead."""

    rank: int
    pid: int
    status: int | None

    @property
    def dead(self) -> bool:
        return self.status not in (None, 0)


class Workers:
    """Starts, watches and ends the processes of this node's ranks. On one host local and global ranks are the same."""

    def __init__(self, logs: str) -> None:
        self._logs = logs
        self._functions: dict[str, Callable[..., Any]] = {}
        self._kept = 0

    def register(self, name: str, function: Callable[..., Any]) -> None:
        """Register one of msrun's functions."""
        self._functions[name] = function

    def missing_functions(self) -> list[str]:
        """Return the functions that have not been handed over."""
        return [name for name in FUNCTIONS if name not in self._functions]

    def look(self) -> list[Worker]:
        """Return all ranks' processes, by rank."""
        states: Mapping[int, Mapping[str, Any]] = self._functions["MONITOR"]([ALL])
        return [
            Worker(rank, state["pid"], state["status"])
            for rank, state in sorted(states.items())
            if state["pid"] is not None
        ]

    def start_all(self) -> None:
        """Start every rank. Raises WorkerError when one has ended at once."""
        self._keep_logs([worker.rank for worker in self.look()])
        if self._functions["START_ALL_WORKER"]() != 0:
            raise WorkerError(
                f"{rank_set(worker.rank for worker in self.look() if worker.status is not None)} did not start"
            )

    def start(self, ranks: Collection[int]) -> None:
        """Start these ranks again; remaining old processes are ended first."""
        self.end(ranks)
        self._keep_logs(ranks)
        if self._functions["START_WORKER_LIST"](sorted(ranks)) != 0:
            raise WorkerError(f"{rank_set(ranks)} did not start again")

    def end_all(self) -> None:
        """Kill every rank and wait until all have ended."""
        self._functions["KILL_WORKER"]([ALL])
        self._await_end({worker.rank for worker in self.look()})

    def end(self, ranks: Collection[int]) -> None:
        """Kill those of these ranks that still run, and wait until they have ended."""
        running = [worker for worker in self.look() if worker.rank in ranks and worker.status is None]
        if running:
            self._functions["KILL_WORKER"]([worker.pid for worker in running])
            self._await_end({worker.rank for worker in running})

    def _await_end(self, ranks: Collection[int]) -> None:
        """Wait until these ranks have ended: a killed process may hold ports and sockets for a moment."""
        limit = Growing(_END_SECONDS, _EACH_ENDS, len(ranks))
        deadline = time.monotonic() + limit
        while left := [worker.rank for worker in self.look() if worker.rank in ranks and worker.status is None]:
            if time.monotonic() > deadline:
                raise WorkerError(f"{rank_set(left)} did not end within {in_words(limit)} of being killed")
            time.sleep(_POLL_SECONDS)

    def _keep_logs(self, ranks: Collection[int]) -> None:
        """Rename the ranks' logs: msrun overwrites a rank's log when it starts the rank again."""
        if not self._logs or not ranks:
            return
        self._kept += 1
        for rank in ranks:
            path = os.path.join(self._logs, f"worker_{rank}.log")
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, os.path.join(self._logs, f"worker_{rank}.before-{self._kept}.log"))
