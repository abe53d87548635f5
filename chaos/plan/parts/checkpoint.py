"""The planned end-of-life checkpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedCheckpoint:
    """The end-of-life checkpoint that must be saved.

    ``step`` is None where the trigger leaves it open (elapsed time, a log line): then it is the last step that the
    saving rank's history shows as trained. ``savers`` holds one rank for each replica group, in group order;
    ``entitled`` maps each saver to every rank of its group that may save in its place. ``directory`` and ``files``
    (rank → path relative to the job's checkpoint directory) are None/empty where the step is open.
    """

    step: int | None
    savers: tuple[int, ...]
    entitled: dict[int, tuple[int, ...]]
    directory: str | None
    files: dict[int, str]
