"""The common part of faults that need a process of the harness beside the job (chaos.faults.beside)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.base.strict_json import parse
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep

SWITCH_OFF = "switch-off"
"""The undo action (chaos.faults.beside.undo)."""

DIRECTORY = "beside"
"""The run's directory for the switches."""


def switch_of(victim: Victim) -> Path:
    """Return the switch of the fault's process, in the run's directory."""
    return victim.record.parent.parent.resolve() / DIRECTORY / victim.fault


def switch_step(fault: str, victim: Victim, note: str) -> UndoStep:
    """Return the undo step that ends the process."""
    return UndoStep(f"{fault}-beside", fault, SWITCH_OFF, {"path": str(switch_of(victim))}, note)


def start(module: str, victim: Victim, *arguments: str) -> None:
    """Start the process, unless it runs already. Raises FaultMissed.

    The process stays in the harness's session and carries no identity of the run, so nobody takes it for a process of
    the job.
    """
    switch = switch_of(victim)
    switch.parent.mkdir(exist_ok=True)
    try:
        switch.touch(exist_ok=False)
    except FileExistsError:
        return
    command = [sys.executable, "-m", f"chaos.faults.beside.{module}", str(switch), str(os.getpid()), *arguments]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(Path(__file__).parents[3])}
    try:
        with _log_of(switch).open("wb") as log:
            subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    except OSError as error:
        raise FaultMissed(f"{module} cannot be started beside the job: {error}") from error


def report_of(victim: Victim) -> dict[str, Any] | None:
    """Return the process's report, None as long as there is none. Raises FaultMissed when the process has ended."""
    switch = switch_of(victim)
    try:
        text, held = read_plain(switch), is_held(switch)
    except OSError as error:
        raise FaultMissed(f"the process beside the job was ended: {error}") from error
    if text.endswith(b"\n") and held:
        report = parse(text)
        return report if isinstance(report, dict) else None
    log = _log_of(switch)
    words = read_plain(log).decode("utf-8", "replace").strip() if log.is_file() else ""
    if words and not held:
        raise FaultMissed(f"the process beside the job has ended: {words.splitlines()[-1]}")
    return None


def is_held(switch: Path) -> bool:
    """Return whether a process holds the switch, by the kernel's word. Raises OSError where there is none."""
    descriptor = os.open(switch, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def switch_off(switch: Path) -> None:
    """Give the switch another name, which ends its process. Does nothing where there is no switch."""
    with contextlib.suppress(FileNotFoundError):
        switch.rename(_off(switch))


def is_off(switch: Path) -> bool:
    """Return whether the process was switched off and has ended; then nothing is left of it."""
    if switch.exists():
        return False
    with contextlib.suppress(FileNotFoundError):
        if is_held(_off(switch)):
            return False
        _off(switch).unlink()
    _log_of(switch).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # another fault's is there
        switch.parent.rmdir()
    return True


def _off(switch: Path) -> Path:
    return switch.with_name(f"{switch.name}.off")


def _log_of(switch: Path) -> Path:
    return switch.with_name(f"{switch.name}.log")
