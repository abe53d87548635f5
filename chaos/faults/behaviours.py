"""What some fault kinds do besides: prepare a job, last, are shown again at their end, find what they hit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.faults.kind import FaultKind, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job

if TYPE_CHECKING:
    from chaos.machine.running.running import JobProcess


class Preparing(FaultKind):
    """A kind of fault that must change something before the job is started, so that the fault can be made later."""

    @abstractmethod
    def prepare_steps(self, fault: str, storage: Path) -> list[UndoStep]:
        """What must be put back; on disk before :meth:`prepare` is called."""

    @abstractmethod
    def prepare(self, storage: Path) -> None:
        """Prepare the directory that the job will save its checkpoints in. Raises OSError."""


class Lasting(FaultKind):
    """A kind of fault that lasts for some time and then ends by the harness's word, while the job goes on."""

    shows_when_let_go = True
    """Its ranks are let go from their barrier before there is evidence, unless it shows at once."""

    ends_by_undo: bool = False
    """Whether its undo steps end it; otherwise :meth:`end` does."""

    @abstractmethod
    def lasts(self, victim: Victim) -> float:
        """Seconds from the landing on."""

    @abstractmethod
    def landed(self, victim: Victim) -> None:
        """Called once for each rank when there is evidence from all of them."""

    @abstractmethod
    def may_end(self, job: Job, victim: Victim) -> bool:
        """Return whether it need not last longer because of this rank."""

    @abstractmethod
    def end(self, victim: Victim) -> None:
        """Ask for its end."""

    @abstractmethod
    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether it has ended for this rank."""


class StillShown(FaultKind):
    """A kind of fault that holds until the harness ends it, and is looked at again just before: it may have vanished.

    ``gone`` is asked first. What lasts on the machine or the network is there when its ranks have ended, and is shown
    then too; what lies on a process or a node ends with it.
    """

    look_every: float | None = None
    """Seconds between two looks, at least, at a fault that ends together with what it lies on.

    It is looked at while it lasts, and the last look counts then. None: it is looked at before its end only.
    """

    outlives_ranks: bool = False
    """Whether it is there also when its rank in an attached job has ended."""

    @abstractmethod
    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Proof that it holds at this moment, None where there is none. Raises FaultMissed like ``evidence``."""

    @abstractmethod
    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether that has ended on which it lay, so that nothing can show any more."""


class Aimed(FaultKind):
    """A kind of fault for attached jobs that hits what has to be found first: a file, connections."""

    @abstractmethod
    def aimed(self, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> FaultKind:
        """Return the kind with what is to be hit of each rank. Raises FaultMissed where there is nothing."""

    @abstractmethod
    def shown(self) -> list[dict[str, Any]]:
        """What would be hit: plain data, for each rank."""
