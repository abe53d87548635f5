"""The protocol of a fault kind: what is done to ranks, its evidence, and how it is undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from chaos.history.ledger import UndoStep
from chaos.platforms.base import Job
from chaos.platforms.process import ProcessIdentity


@dataclass(frozen=True)
class Victim:
    """A rank that a fault hits, and its process.

    ``record`` is the history file of the agent in it. ``answer`` answers the agent while it holds the rank at a
    barrier; None when it is not held. ``storage`` is the directory that the job saves its checkpoints in, absolute and
    without links; None when the job kind does not say.
    """

    rank: int
    identity: ProcessIdentity
    record: Path
    answer: Callable[[dict[str, Any]], None] | None = None
    storage: Path | None = None


class FaultKind(Protocol):
    """One kind of fault."""

    @property
    def name(self) -> str:
        """Its name in scenarios."""

    @property
    def effect(self) -> str:
        """What the plan reckons with: death, suspension, termination, memory error, communication error, storage full,
        storage read-only or none."""

    @property
    def signal(self) -> int | None:
        """Recorded with the act; None for faults that send none."""

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """What must be put back; on disk before :meth:`inject` is called."""

    def inject(self, job: Job, victim: Victim) -> None:
        """Do it to one rank."""

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Proof that it is done, None as long as there is none. Raises FaultMissed when there never will be."""


@runtime_checkable
class Preparing(Protocol):
    """A kind of fault that must change something before the job is started, so that the fault can be made later."""

    def prepare_steps(self, fault: str, storage: Path) -> list[UndoStep]:
        """What must be put back; on disk before :meth:`prepare` is called."""

    def prepare(self, storage: Path) -> None:
        """Prepare the directory that the job will save its checkpoints in. Raises OSError."""


class FaultMissed(RuntimeError):
    """The fault did not happen as planned. The text is the reason that the report gives."""
