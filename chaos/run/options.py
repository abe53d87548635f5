"""What the command line decides about a run, and what becomes of the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunOptions:
    """What the command line decides. ``baseline`` overrides the scenario's; ``cores`` is how many a job may take.

    ``arguments`` are those of the command line as it was given, for the record.
    """

    reports: Path
    baseline: str | None = None
    cores: int | None = None
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunOutcome:
    """What became of a run: its directory, its verdict, and whether it was interrupted."""

    run_dir: Path
    verdict: str
    interrupted: bool
