"""In the launcher: records of the exits of its ranks.

A process's exit status goes to the parent that asks for it, and to nobody else afterwards. A launcher that watches its
ranks (msrun with an agent, or with ``--join``) takes the kernel's word away from the harness; this module records it
for the harness.
"""

from __future__ import annotations

import atexit
import os
from types import ModuleType
from typing import Any

from chaos.agent.configuration import Configuration, place_of
from chaos.agent.record import Record


class Reaped:
    """A recorder of the event ``child.exit``, for each rank whose status ``subprocess`` has collected.

    So it is for a process beside the ranks that CHAOS_ROLE names.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._record: Record | None = None
        self._started: dict[int, tuple[int | None, int]] = {}

    def hook(self, module: ModuleType) -> None:
        """Watch ``subprocess.Popen``: its started processes, and its collected statuses (Python 3.9 to 3.13)."""
        popen = module.Popen
        start, take_in = popen.__init__, popen._handle_exitstatus

        def start_watched(process: Any, *args: Any, **kwargs: Any) -> None:
            start(process, *args, **kwargs)
            self._note_start(process.pid, kwargs.get("env") or os.environ)

        def take_in_and_tell(process: Any, status: int, *args: Any, **kwargs: Any) -> Any:
            result = take_in(process, status, *args, **kwargs)
            self._tell(process.pid, status)
            return result

        popen.__init__, popen._handle_exitstatus = start_watched, take_in_and_tell

    def _note_start(self, pid: int, environment: Any) -> None:
        """Remember a rank's start time by the kernel, since the PID alone may be used again."""
        place = place_of(environment)
        if place.rank is None and not environment.get("CHAOS_ROLE"):
            return
        with open(f"/proc/{pid}/stat", "rb") as file:  # unreaped, so it exists even if the process has ended
            fields = file.read().rpartition(b")")[2].split()
        self._started[pid] = (place.rank, int(fields[19]))

    def _tell(self, pid: int, status: int) -> None:
        known = self._started.pop(pid, None)
        if known is None:
            return
        if self._record is None:
            to = self._configuration
            self._record = Record(to.history, run=to.run, attempt=to.attempt, rank=None, node=to.node)
            atexit.register(self._record.close)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self._record.write(
            "child.exit", child_pid=pid, child_rank=known[0], start_time=known[1], signal=signal, code=code
        )
