"""Harnesses in processes of their own that end together, on request, as after Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Finished:
    """The outcome of a command: its exit code and its output."""

    code: int
    output: str
    errors: str


class StoppableRuns:
    """Runs commands to their ends, each in a session of its own. Safe to share between threads."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether all were ordered to end."""
        return self._stopped.is_set()

    def finish(self, command: Sequence[str], *, keep_errors: bool = False) -> Finished:
        """Run a command to its end. Its standard error is discarded unless it is to be kept."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if keep_errors else subprocess.DEVNULL,
            text=True,
            errors="replace",  # a command may write in another encoding (PYTHONIOENCODING)
            start_new_session=True,  # Ctrl-C is handed on, once
        )
        self._running.add(process)
        if self.stopped:  # it was started while the others were ordered to end
            process.send_signal(signal.SIGTERM)
        output, errors = process.communicate()
        self._running.discard(process)
        return Finished(process.returncode, output, errors or "")

    def stop(self) -> None:
        """Make every command end now; later ones end at once."""
        self._stopped.set()
        for process in list(self._running):
            process.send_signal(signal.SIGTERM)  # SIGINT may be ignored, and is inherited so
