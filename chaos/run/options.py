"""The options of the command line for a run, and the outcome of the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.own.allowed import NOTHING, Allowed


@dataclass(frozen=True)
class RunOptions:
    """The options of the command line. ``baseline`` overrides the scenario's; ``cores`` is how many a job may take.

    ``arguments`` are the arguments of the command line as given, for the record. With ``page`` a run gets report.html.
    ``allowed`` is the scenario's own code that may run. The run is number ``number`` of the ``of`` cells of the call.
    """

    reports: Path
    baseline: str | None = None
    cores: int | None = None
    arguments: tuple[str, ...] = ()
    page: bool = False
    number: int = 1
    of: int = 1
    allowed: Allowed = NOTHING


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: its directory, its verdict, and whether it was interrupted."""

    run_dir: Path
    verdict: str
    interrupted: bool
