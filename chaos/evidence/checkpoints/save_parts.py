"""Saves in several files: a script may write its model and its optimizer each into a file of its own.

Files that the same process has saved after the same step are parts of one save. Together they hold what the rank held,
and a number of the step in one of them counts for all.
"""

from __future__ import annotations

from contextlib import suppress

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, owners_of
from chaos.evidence.checkpoints.whole import is_of_weights
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError


def other_parts(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> list[OwnedCheckpoint]:
    """Return the other files of the same save; none where it is not known which save has made the file."""
    owned = owners_of(history, artifacts).owned
    return [other for other in owned if other.path != file.path and are_of_one_save(file, other)]


def are_of_one_save(file: OwnedCheckpoint, other: OwnedCheckpoint) -> bool:
    """Return whether the same process has saved both files after the same step."""
    key = _key(file)
    return key is not None and key == _key(other)


def held_elsewhere(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> frozenset[str]:
    """Return the parameters that the other files of the same save hold."""
    names: set[str] = set()
    for part in other_parts(history, artifacts, file):
        with suppress(CheckpointError):  # chaos.checks.checkpoint says so
            names |= artifacts.read_checkpoint(part.path).digests.keys()
    return frozenset(names)


def _key(file: OwnedCheckpoint) -> tuple[object, ...] | None:
    made = file.made
    if made is None or len(file.held) != 1 or is_of_weights(file):
        return None
    return made.attempt, made.pid, file.rank, file.kind, file.held
