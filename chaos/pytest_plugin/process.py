"""The process that runs a scenario."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

_INTERRUPT_SECONDS = 120.0
"""How long an interrupted run may take to stop its job and undo its faults."""


def run_to_end(command: Sequence[str], directory: Path) -> tuple[int, str, str]:
    """Run a command and return its exit status, output and error output.

    It stays in this process group, so Ctrl-C on the terminal reaches it too. When this process alone is interrupted it
    is interrupted as well, and waited for: it has a job to stop and faults to undo.
    """
    process = subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        output, errors = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_INTERRUPT_SECONDS)
        raise
    return process.returncode, output, errors
