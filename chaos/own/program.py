"""Running one program of the user's for a run: with a time limit, and with nothing left of it afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from chaos.base.clock import Clock
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.ending import end_processes
from chaos.machine.job.launcher_environment import handed_on
from chaos.machine.job.processes import RUN_VARIABLE, find_run_processes

MOST_OUTPUT = 8 << 10
"""Bytes of the output that are kept: the last ones."""


@dataclass(frozen=True)
class Ended:
    """The end of a program. ``status`` is its exit status, negative for a signal; None where it was not started.

    ``timed_out``: it was ended at its limit. ``left`` counts the processes that it left and that were ended.
    """

    status: int | None
    timed_out: bool
    seconds: float
    output: str
    left: int = 0

    @property
    def ok(self) -> bool:
        """Whether it came to a good end in time."""
        return self.status == 0 and not self.timed_out

    @property
    def how(self) -> str:
        """The end in words."""
        if self.status is None:
            return f"could not be started: {self.output}"
        if self.timed_out:
            return "was ended at its limit"
        return f"ended with signal {-self.status}" if self.status < 0 else f"ended with status {self.status}"


@dataclass(frozen=True)
class OwnPlace:
    """The run that a program belongs to, and where the program works."""

    token: str
    ledger: Ledger
    clock: Clock
    directory: Path
    environment: Mapping[str, str]


def run_program(place: OwnPlace, step: str, command: Sequence[str], limit: float) -> Ended:
    """Run a program to its end or to its limit, then end what it has left.

    The undo step ``step`` is on disk before: after a SIGKILL of the harness ``chaos heal`` ends the program and its
    children by the run's variable in their environment.
    """
    note = f"end the program {command[0]} and what it has started"
    place.ledger.record(UndoStep(step, None, "end-job", {"run": place.token}, note))
    began = time.monotonic()
    environment = {**handed_on(os.environ), **place.environment, RUN_VARIABLE: place.token}
    try:
        process = subprocess.Popen(
            list(command),
            cwd=place.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        place.ledger.close(step, "it was not started")
        return Ended(None, False, time.monotonic() - began, str(error.strerror))
    assert process.stdout is not None
    tail = _Tail(process.stdout)
    timed_out = False
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        left = _end(place, process)
        place.ledger.close(step, "it has ended")
    return Ended(process.returncode, timed_out, time.monotonic() - began, tail.text(), left)


def _end(place: OwnPlace, process: subprocess.Popen[bytes]) -> int:
    """End the program, its group, and processes that it has started elsewhere. Return how many were found there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    report = end_processes(lambda: find_run_processes(place.token), grace_seconds=0, clock=place.clock)
    return len(report.ended)


class _Tail:
    """Reads the output in a thread of its own, and keeps its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._kept = b""
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the end of the output, once all that held it have ended; a process that cannot end is not awaited."""
        self._thread.join(10)
        return self._kept.decode("utf-8", "replace")

    def _read(self, stream: IO[bytes]) -> None:
        with stream, suppress(OSError, ValueError):
            while part := os.read(stream.fileno(), 1 << 16):
                self._kept = (self._kept + part)[-MOST_OUTPUT:]
