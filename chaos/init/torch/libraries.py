"""Libraries whose own loops and saves a script of PyTorch may leave its training to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.init.checkpoints import Load, Save
from chaos.init.resume import ResumeOption
from chaos.init.source import Source, imports
from chaos.init.torch.owners import LIGHTNING
from chaos.init.values import Value

SPREADING = LIGHTNING | {"accelerate"}
"""Libraries that give each rank its share of a loader's samples."""


@dataclass(frozen=True)
class Trainer:
    """The saves and loads of a library's trainer, and the option of its resume; None where the script needs none.

    ``steps`` and ``epochs`` are those that the script gives it.
    """

    saves: tuple[Save, ...]
    loads: tuple[Load, ...]
    resume: ResumeOption | None
    steps: Value | None = None
    epochs: Value | None = None


def imports_any(sources: Sequence[Source], libraries: frozenset[str]) -> bool:
    """Return whether a file of the job imports one of the libraries."""
    return any(imports(source) & libraries for source in sources)
