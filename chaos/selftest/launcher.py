"""Runs scenarios as ``chaos run`` does for a user, each in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.soak.stoppable import StoppableRuns

SEED = 1
"""Seed for everything that a scenario draws: the same run each time."""


class RunFailed(Exception):
    """``chaos run`` came to no result. The text is its message."""


@dataclass(frozen=True)
class Ran:
    """A finished run: its directory and its verdict."""

    directory: Path
    verdict: str


class Launcher:
    """Starts ``chaos run``. Safe to share between threads."""

    def __init__(self, python: str = sys.executable) -> None:
        # Tied to this process: after a SIGKILL of it the runs end as after Ctrl-C.
        self._chaos = [python, "-m", "chaos.cli.with_parent", str(os.getpid())]
        self._runs = StoppableRuns()

    def run(self, scenario: Path, reports: Path, *, cores: int, options: Sequence[str] = ()) -> Ran:
        """Run a scenario of one cell to its end, with the stand-in for the SDK.

        Raises RunFailed when there is no result: the scenario or the machine is refused, the harness fails, or
        :meth:`stop` was called.
        """
        command = [*self._chaos, "run", str(scenario), "--json", "--reports", str(reports)]
        command += ["--cores", str(cores), "--seed", str(SEED), "--sdk", "standin", *options]
        ended = self._runs.finish(command, keep_errors=True)
        return _read(ended.code, ended.output, ended.errors)

    def stop(self) -> None:
        """End every run now, as Ctrl-C does: each undoes its faults. Later runs end at once."""
        self._runs.stop()


def _read(code: int, output: str, errors: str) -> Ran:
    try:
        (cell,) = json.loads(output)["cells"]
        # 0 to 2 are verdicts of whole runs; what was broken off has one, too, and does not count.
        if code in (0, 1, 2) and cell["directory"] is not None and cell["verdict"] is not None:
            return Ran(Path(cell["directory"]), cell["verdict"])
    except (ValueError, KeyError, TypeError):
        pass  # it was refused or interrupted, and says so below
    last = " / ".join(errors.strip().splitlines()[-3:]) or "it said nothing"
    raise RunFailed(f"chaos run ended with {code}: {last}")
