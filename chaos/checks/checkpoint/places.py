"""The places that statements of check ``checkpoint`` point to."""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import OwnedCheckpoint


def paths_of(artifacts: Artifacts, files: list[OwnedCheckpoint]) -> tuple[str, ...]:
    """Return the paths of these files within the run."""
    return tuple(artifacts.relative(file.path) for file in files)
