"""Saves in several files: a script may write its model and its optimizer each into a file of its own.

Files that the same process has saved after the same step are parts of one save. Together they hold what the rank held,
and a number of the step in one of them counts for all. Other ranks may add files of their own to the directory, such as
the state of their generators, while one rank saves weights and optimizer for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, owners_of
from chaos.evidence.checkpoints.several_networks import as_recorded
from chaos.evidence.checkpoints.whole import is_of_weights
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.plan.model import Plan


def other_parts(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> list[OwnedCheckpoint]:
    """Return the other files of the same save; none where it is not known which save has made the file.

    Of a file that was removed since the job was started again, the others may have been removed, too.
    """
    owners = owners_of(history, artifacts)
    files = (*owners.owned, *owners.removed) if file in owners.removed else owners.owned
    return [other for other in files if other.path != file.path and are_of_one_save(file, other)]


def are_of_one_save(file: OwnedCheckpoint, other: OwnedCheckpoint) -> bool:
    """Return whether the same process has saved both files after the same step."""
    key = _key(file)
    return key is not None and key == _key(other)


def of_other_ranks(history: History, artifacts: Artifacts, file: OwnedCheckpoint) -> list[OwnedCheckpoint]:
    """Return the files that other ranks have saved after the same step, in the same attempt and directory."""
    owners = owners_of(history, artifacts)
    files = (*owners.owned, *owners.removed) if file in owners.removed else owners.owned
    return [other for other in files if other.rank != file.rank and are_of_one_directory(file, other)]


def are_of_one_directory(file: OwnedCheckpoint, other: OwnedCheckpoint) -> bool:
    """Return whether both files were saved after the same step into the same directory, by whichever ranks."""
    key = _key_of_directory(file)
    return key is not None and key == _key_of_directory(other)


def held_elsewhere(
    history: History, artifacts: Artifacts, file: OwnedCheckpoint, theirs: Mapping[str, str]
) -> frozenset[str]:
    """Return the parameters that the other files of the same save hold, by the names of the rank: ``theirs``."""
    return _held_in(artifacts, other_parts(history, artifacts, file), theirs)


def held_by_group(
    plan: Plan, history: History, artifacts: Artifacts, file: OwnedCheckpoint, theirs: Mapping[str, str]
) -> frozenset[str]:
    """Return the parameters that ranks of the same replica group have saved after the same step beside a file.

    None where the plan has every rank save: then no file of another rank stands for its own.
    """
    if plan.training.every_rank_saves:
        return frozenset()
    group = next((group for group in plan.layout.replica_groups if file.rank in group), ())
    parts = [part for part in of_other_ranks(history, artifacts, file) if part.rank in group]
    return _held_in(artifacts, parts, theirs)


def _held_in(artifacts: Artifacts, parts: Iterable[OwnedCheckpoint], theirs: Mapping[str, str]) -> frozenset[str]:
    names: set[str] = set()
    for part in parts:
        with suppress(CheckpointError):  # chaos.checks.checkpoint says so
            names |= as_recorded(artifacts.read_checkpoint(part.path), theirs).digests.keys()
    return frozenset(names)


def _key(file: OwnedCheckpoint) -> tuple[object, ...] | None:
    made = file.made
    if made is None or len(file.held) != 1 or is_of_weights(file):
        return None
    return made.attempt, made.pid, file.rank, file.kind, file.held


def _key_of_directory(file: OwnedCheckpoint) -> tuple[object, ...] | None:
    made = file.made
    if made is None or len(file.held) != 1 or is_of_weights(file):
        return None
    return made.attempt, file.kind, file.held, file.path.parent
