"""Further behaviours of fault kinds: preparing a job, lasting, a second proof at the end, finding their aims."""

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
        """Return the undo steps of the preparation; they are on disk before :meth:`prepare` is called."""

    @abstractmethod
    def prepare(self, storage: Path) -> None:
        """Prepare the directory that the job will save its checkpoints in. Raises OSError."""


class Lasting(FaultKind):
    """A kind of fault that lasts for some time and then ends by the harness's order, while the job goes on."""

    shows_when_let_go = True
    """Its ranks go on from their barrier before there is evidence, unless it shows at once."""

    ends_by_undo: bool = False
    """Whether its undo steps end it; otherwise :meth:`end` does."""

    held_without_seconds: bool = False
    """Whether only the teardown ends it where the scenario gives no ``seconds``, when all ranks have ended."""

    def lasts_in(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether a fault with these parameters ends by the harness's order while the job goes on."""
        return not self.held_without_seconds or "seconds" in parameters

    @abstractmethod
    def lasts(self, victim: Victim) -> float:
        """Return the seconds from the landing on."""

    @abstractmethod
    def note_landing(self, victim: Victim) -> None:
        """Note the landing; called once for each rank when there is evidence from all of them."""

    @abstractmethod
    def may_end(self, job: Job, victim: Victim) -> bool:
        """Return whether the fault may end as far as this rank is concerned."""

    @abstractmethod
    def end(self, victim: Victim) -> None:
        """Ask for the end of the fault."""

    @abstractmethod
    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the fault has ended for this rank."""


class StillShown(FaultKind):
    """A kind of fault that holds until the harness ends it, and is checked again just before: it may have vanished.

    ``gone`` is asked first. A fault of the machine or the network outlives its ranks, and is checked after their end
    too; a fault of a process or a node ends with it.
    """

    look_every: float | None = None
    """Seconds between two looks, at least, at a fault that ends together with its process or node.

    The fault is checked while it lasts, and the last look counts then. None: it is checked before its end only.
    """

    outlives_ranks: bool = False
    """Whether the fault is there also when its rank in an attached job has ended."""

    @abstractmethod
    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the proof that it holds at this moment, None without one. Raises FaultMissed like ``evidence``."""

    @abstractmethod
    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the process or node of the fault has ended, so that nothing can show the fault any more."""


class Aimed(FaultKind):
    """A kind of fault for attached jobs whose aim has to be found first: a file, connections."""

    @abstractmethod
    def aim_at(self, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> FaultKind:
        """Return the kind with an aim at each rank. Raises FaultMissed where there is none."""

    @abstractmethod
    def aim_records(self) -> list[dict[str, Any]]:
        """Return the aims as plain data, for each rank."""
