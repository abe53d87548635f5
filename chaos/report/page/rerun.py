"""The command that repeats a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from chaos.report.result import Result


def rerun_command(result: Result) -> str:
    """Return the command that repeats a run, to copy; empty where no command has made the run.

    It is the recorded command. The cell is added where the command ran several. The seed of random targets is added
    where the command named none, unless one of them has a seed of its own in the scenario.
    """
    command = list(result.made.command or ())
    if not command:
        return ""
    if result.cell and not _names(command, "--cell"):
        command += ["--cell", result.cell]
    seeds = [fault["seed"] for fault in result.plan.get("faults") or [] if isinstance(fault.get("seed"), int)]
    drawn = seeds == list(range(seeds[0], seeds[0] + len(seeds))) if seeds else False
    if drawn and not _names(command, "--seed"):
        command += ["--seed", str(seeds[0])]  # each further target has been drawn with the next number
    return shlex.join(command)


def _names(command: Sequence[str], option: str) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in command)
