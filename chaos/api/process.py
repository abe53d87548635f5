"""The process that runs a scenario."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_INTERRUPT_SECONDS = 120.0
"""How long an interrupted run may take to stop its job and undo its faults."""


def run_to_end(
    command: Sequence[str], directory: Path, on_line: Callable[[str], None] | None = None
) -> tuple[int, str, str]:
    """Run a command and return its exit status, output and error output.

    ``said`` is called with each line of its error output as soon as it is there, from another thread. The command stays
    in this process group, so Ctrl-C on the terminal reaches it too. When this process alone is interrupted it is
    interrupted as well, and waited for: it has a job to stop and faults to undo.
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
    assert process.stdout is not None and process.stderr is not None
    output, errors = _Reader(process.stdout), _Reader(process.stderr, on_line)
    try:
        process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=_INTERRUPT_SECONDS)
        raise
    return process.returncode, output.text(), errors.text()


class _Reader:
    """Reads all of a stream in a thread of its own."""

    def __init__(self, stream: IO[str], on_line: Callable[[str], None] | None = None) -> None:
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._read, args=(stream, on_line), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return everything, once the stream has come to its end."""
        self._thread.join()
        return "".join(self._lines)

    def _read(self, stream: IO[str], on_line: Callable[[str], None] | None) -> None:
        with stream:
            for line in stream:
                self._lines.append(line)
                if on_line is not None:
                    with suppress(Exception):  # else the pipe would fill, and the command would wait for a reader
                        on_line(line.rstrip("\n"))
