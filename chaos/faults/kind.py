"""What a fault kind is: what is done to ranks, its evidence, and how it is undone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from chaos.base import registry as registries
from chaos.base.registry import RegistryError
from chaos.history.ledger import UndoStep
from chaos.machine.ascend.machine import RankMachine, ThisMachine
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.running.running import JobProcess
from chaos.plan.rules.asks import Asks
from chaos.plan.rules.hazard import Hazard
from chaos.plan.rules.parameters import Parameters
from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Victim:
    """A rank that a fault hits, and its process.

    ``record`` is the history file of the agent in it. ``answer`` answers the agent while it holds the rank at a
    barrier; None when it is not held. ``storage`` is the directory that the job saves its checkpoints in, absolute and
    without links; None when the job kind does not say. ``fault`` is the fault's id, ``ranks`` are all that it hits, and
    ``parameters`` are those that the scenario gives it. ``tell_controller`` tells the process of the SDK's controller
    something, and ``tell_worker`` this rank, whatever it does; both return False where nobody is there to be told.
    ``place`` is what the platform says of where the rank lives, plain data for undo steps. ``ports`` are those of the
    launch that are known by a word (:mod:`chaos.plan.ports`). ``machine`` is the one that the rank runs on. ``run`` is
    the run's identity where the rank does not carry it: in a job that was running before.
    """

    rank: int
    identity: ProcessIdentity
    record: Path
    answer: Callable[[dict[str, Any]], None] | None = None
    storage: Path | None = None
    fault: str = ""
    ranks: tuple[int, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tell_controller: Callable[[dict[str, Any]], bool] = lambda message: False
    tell_worker: Callable[[dict[str, Any]], bool] = lambda message: False
    place: Mapping[str, Any] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    machine: RankMachine = field(default_factory=ThisMachine)
    run: str = ""

    @property
    def here(self) -> ProcessIdentity:
        """The process as this host knows it: for faults that are made only where every node is this host."""
        return replace(self.identity, node=None)


class FaultKind(ABC):
    """One kind of fault. Each kind derives from it, and has what stands here unless it says otherwise."""

    name: str
    """Its name in scenarios."""

    effect: str
    """What the plan reckons with: death, suspension, memory error, … (:data:`chaos.plan.schedule.EFFECTS`)."""

    signal: int | None = None
    """The signal that it sends, which is recorded with the act; None for faults that send none."""

    @abstractmethod
    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """What must be put back; on disk before :meth:`inject` is called."""

    @abstractmethod
    def inject(self, job: Job, victim: Victim) -> None:
        """Do it to one rank."""

    @abstractmethod
    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Proof that it is done, None as long as there is none. Raises FaultMissed when there never will be."""


def fault_kind(name: str) -> FaultKind:
    """The fault kind of that name. Raises RegistryError where it cannot be loaded, UnknownName where there is none."""
    members = registries.registry("faults")
    kind = members.load(name)
    if not isinstance(kind, FaultKind):
        raise RegistryError(
            f"the fault kind {name!r} is registered as {members.points[name].value}, which is no FaultKind: "
            "its class has to derive from chaos.faults.kind.FaultKind (docs/extending.md)"
        )
    return kind


@runtime_checkable
class Hazardous(Protocol):
    """A kind of fault that may disturb more than its job. A scenario must allow it by name."""

    @property
    def hazard(self) -> Hazard:
        """What it may do, and how that is put back."""


@runtime_checkable
class Parametrised(Protocol):
    """A kind of fault that says which parameters it has. The plan refuses what is none of them."""

    @property
    def parameters(self) -> Parameters:
        """Each by its name."""


@runtime_checkable
class Asking(Protocol):
    """A kind of fault that cannot be made at any moment. The plan refuses triggers at which it cannot."""

    @property
    def asks(self) -> Asks:
        """Where its ranks must be."""


@runtime_checkable
class Placed(Protocol):
    """A kind of fault whose effect depends on where the job lives."""

    def effect_in(self, scenario: Scenario) -> str:
        """Its effect on the job of this scenario."""


@runtime_checkable
class Preparing(Protocol):
    """A kind of fault that must change something before the job is started, so that the fault can be made later."""

    def prepare_steps(self, fault: str, storage: Path) -> list[UndoStep]:
        """What must be put back; on disk before :meth:`prepare` is called."""

    def prepare(self, storage: Path) -> None:
        """Prepare the directory that the job will save its checkpoints in. Raises OSError."""


@runtime_checkable
class Lasting(Protocol):
    """A kind of fault that lasts for some time and then ends by the harness's word, while the job goes on.

    Its ranks are let go from their barrier before there is evidence: it shows only where they go on. A kind that shows
    at once has the attribute ``seen_at_once = True``; its ranks are held until then, like those of any other. One that
    is ended by its undo steps has ``ends_by_undo = True``. (See :func:`shows_when_let_go`.)
    """

    def lasts(self, victim: Victim) -> float:
        """Seconds from the landing on."""

    def landed(self, victim: Victim) -> None:
        """Called once for each rank when there is evidence from all of them."""

    def may_end(self, job: Job, victim: Victim) -> bool:
        """Whether it need not last longer because of this rank."""

    def end(self, victim: Victim) -> None:
        """Ask for its end."""

    def ended(self, job: Job, victim: Victim) -> bool:
        """Whether it has ended for this rank."""


def shows_when_let_go(kind: FaultKind) -> bool:
    """Whether its evidence can show only where the ranks that are held for it go on.

    True of those that last, but for ``seen_at_once``; another kind says so by the attribute ``shows_when_let_go``.
    """
    lasting = isinstance(kind, Lasting) and not getattr(kind, "seen_at_once", False)
    return bool(getattr(kind, "shows_when_let_go", lasting))


@runtime_checkable
class Lacking(Protocol):
    """A kind of fault that can say what its evidence lacks. It is asked when the deadline has expired."""

    def lacking(self, victim: Victim) -> str:
        """What was seen last, in words."""


@runtime_checkable
class StillShown(Protocol):
    """A kind of fault that holds until the harness ends it, and is looked at again just before: it may have vanished.

    ``gone`` is asked first. What lasts on the machine or the network is there when its ranks have ended, and is shown
    then too; what lies on a process or a node ends with it.
    """

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Proof that it holds at this moment, None where there is none. Raises FaultMissed like ``evidence``."""

    def gone(self, job: Job, victim: Victim) -> bool:
        """Whether that has ended on which it lay, so that nothing can show any more."""


@runtime_checkable
class LookedAt(StillShown, Protocol):
    """One that ends together with what it lies on. So it is looked at while it lasts: the last look counts then."""

    @property
    def look_every(self) -> float:
        """Seconds between two looks, at least."""


@runtime_checkable
class AlsoRunning(Protocol):
    """A kind of fault that is made in another way in a job that runs already."""

    def in_running_job(self) -> FaultKind | None:
        """The kind for such a job; None where it cannot be made there."""


@runtime_checkable
class Aimed(Protocol):
    """A kind of fault for running jobs that hits what has to be found first: a file, connections.

    ``outlives_ranks = True`` says that it is there also when its rank has ended, ``said_by`` whose word its evidence
    is.
    """

    def aimed(self, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> FaultKind:
        """The kind with what is to be hit of each rank. Raises FaultMissed where there is nothing."""

    def shown(self) -> list[dict[str, Any]]:
        """What would be hit: plain data, for each rank."""


AGENT = "is made by the agent inside the rank, which has to be there when the rank starts"


def needed_from_start(kind: FaultKind) -> str | None:
    """What a job must have from its start for this kind of fault; None when a job that runs already can be hit too.

    A kind that needs nothing but a rank's process has the attribute ``from_outside = True``. Where it lasts, it is one
    that is :class:`StillShown`; where it lies on the machine, once for all ranks, it has ``of_machine = True``. Another
    one that needs no agent says in ``needs_from_start`` what it needs instead.
    """
    if in_running_job(kind) is not None:
        return None
    return str(getattr(kind, "needs_from_start", AGENT))


def in_running_job(kind: FaultKind) -> FaultKind | None:
    """The kind as it is made in a job that runs already; None where it cannot be made there."""
    if getattr(kind, "from_outside", False):
        return kind
    return kind.in_running_job() if isinstance(kind, AlsoRunning) else None


def means_of(kind: FaultKind) -> str:
    """What a kind of fault acts on, by its attribute ``means``; a platform says which of them it can carry.

    ``agent`` (a rank, through the agent in it; the default), ``process`` (by a signal), ``files`` and ``mounts`` (of
    the job), ``node``, ``names``, ``network``, ``device``, ``host``.
    """
    return str(getattr(kind, "means", "agent"))


class FaultMissed(RuntimeError):
    """The fault did not happen as planned. The text is the reason that the report gives."""
