"""The switch of a process beside the job: a file that it holds locked while it runs, and whose new name ends it.

Nobody needs the PID to end the process, the kernel's lock tells whether it runs, and whoever heals a run finds it by a
path. It also ends with the harness, however that ends (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import sys
from typing import Any, TextIO

_PR_SET_PDEATHSIG = 1
LOOK_SECONDS = 0.02
"""Seconds until the process notices the switch, at most."""


class Switch:
    """The switch in the process beside the job. ``sys.argv`` has its path and the PID of the harness first."""

    def __init__(self) -> None:
        self.path, harness = sys.argv[1], int(sys.argv[2])
        self.arguments = sys.argv[3:]
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != harness:
            raise SystemExit(f"the harness {harness} has ended already")
        self._file: TextIO = open(self.path, "r+", encoding="utf-8")  # noqa: SIM115, PTH123 - held until the end
        fcntl.flock(self._file, fcntl.LOCK_EX)  # a process that checks the lock holds it for a moment

    def say(self, **fields: Any) -> None:
        """Report to the harness: one JSON object, the latest counts."""
        text = json.dumps({"pid": os.getpid(), **fields})
        self._file.seek(0)
        self._file.write(text + "\n")
        self._file.truncate()
        self._file.flush()

    def is_on(self) -> bool:
        """Return whether the switch is still there, by its name."""
        return os.path.exists(self.path)  # noqa: PTH110
