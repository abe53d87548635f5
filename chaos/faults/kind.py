"""The fault kind: its act on ranks, its evidence, and its undo steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.history.ledger import UndoStep
from chaos.machine.ascend.machine import RankMachine, ThisMachine
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.job_effect import JobEffect, as_effect
from chaos.plan.rules.hazard import Hazard
from chaos.plan.rules.parameters import Parameters
from chaos.plan.rules.required_place import RequiredPlace

if TYPE_CHECKING:
    from chaos.platforms.kubernetes.rbac import Rule
    from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Victim:
    """A rank that a fault hits, and its process.

    ``record`` is the history file of the agent in it. ``answer`` answers the agent while it holds the rank at a
    barrier; None when it is not held. ``storage`` is the directory that the job saves its checkpoints in, absolute and
    without links; None when the job kind does not say. ``fault`` is the fault's id, ``ranks`` are all that it hits, and
    ``parameters`` are those that the scenario gives it. ``tell_controller`` sends a message to the process of the SDK's
    controller, and ``tell_worker`` to this rank, whatever it does; both return False where nobody receives it.
    ``place`` is the platform's description of the rank's place, plain data for undo steps. ``ports`` are the launch's
    ports that are known by a word (:class:`chaos.plan.traits.JobTraits`). ``machine`` is the rank's machine. ``run`` is
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


_FORMER_NAMES = {
    "aimed": "aim_at",
    "asks": "required_place",
    "landed": "note_landing",
    "means": "surface",
    "said_by": "evidence_source",
    "shown": "aim_records",
}
"""Maps former names of attributes to today's: kinds of other packages may still have them."""

AGENT = "is made by the agent inside the rank, which has to be there when the rank starts"


class FaultKind(ABC):
    """One kind of fault. Each kind derives from this class, and has its defaults unless it says otherwise."""

    name: str
    """Its name in scenarios."""

    effect: JobEffect
    """Its effect on the job in the plan. A built-in effect may be given by its name."""

    signal: int | None = None
    """The signal that it sends, which is recorded with the act; None for faults that send none."""

    parameters: Parameters | None = None
    """Its parameters by their names: the plan refuses any other. None where the plan looks at them by a rule."""

    required_place: RequiredPlace | None = None
    """The required place of its ranks: the plan refuses triggers at which it cannot be made.

    None: any moment will do.
    """

    hazard: Hazard | None = None
    """Its disturbance beside its job, and the repair: a scenario must allow the kind by name."""

    shows_when_let_go: bool = False
    """Whether its evidence can show only after the ranks that are held for it go on."""

    surface: str = "agent"
    """The object that it acts on, a key of :data:`chaos.platforms.surfaces.SURFACES`: a platform may not carry it."""

    needs: tuple[str, ...] = ()
    """Names of probes (:mod:`chaos.doctor`) that must succeed where the job runs."""

    chosen_by: str | None = None
    """The probe that selects one of several ways of making it; None where there is one way."""

    changes_nodes: bool = False
    """Whether it changes a node of a cluster, which the scenario must name."""

    rights: tuple[Rule, ...] = ()
    """Its rights in a cluster beside every run's."""

    from_outside: bool = False
    """Whether it needs nothing but a rank's process, so it is made in an attached job too.

    A kind that lasts is :class:`~chaos.faults.behaviours.StillShown` then.
    """

    needs_from_start: str = AGENT
    """The part that a job must have from its start for this kind, where it cannot be made in an attached job."""

    of_machine: bool = False
    """Whether it lies on the machine, once for all ranks of an attached job."""

    evidence_source: str = ""
    """The source of its evidence in an attached job; empty: the kernel."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Replace the name of an effect by the effect itself, and former names of attributes by today's."""
        super().__init_subclass__(**options)
        for former, name in _FORMER_NAMES.items():
            if former in cls.__dict__ and hasattr(cls, name) and name not in cls.__dict__:
                setattr(cls, name, cls.__dict__[former])
        if isinstance(word := cls.__dict__.get("effect"), str):
            cls.effect = as_effect(word)

    def effect_in(self, scenario: Scenario) -> JobEffect:
        """Return its effect on the job of this scenario, where the job's place matters."""
        del scenario
        return self.effect

    @abstractmethod
    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return the undo steps; they are on disk before :meth:`inject` is called."""

    @abstractmethod
    def inject(self, job: Job, victim: Victim) -> None:
        """Make the fault in one rank."""

    @abstractmethod
    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the proof that it is made, None as long as there is none.

        Raises FaultMissed when there never will be.
        """

    def lacking(self, victim: Victim) -> str:
        """Return the missing part of the evidence, in words; empty where it cannot say. Called after the deadline."""
        del victim
        return ""

    def in_running_job(self) -> FaultKind | None:
        """Return the kind as it is made in an attached job; None where it cannot be made there."""
        return self if self.from_outside else None


def needed_from_start(kind: FaultKind) -> str | None:
    """Return the part that a job must have from its start for a kind; None where an attached job will do."""
    return kind.needs_from_start if kind.in_running_job() is None else None


class FaultMissed(RuntimeError):
    """The fault did not happen as planned. The text is the reason that the report gives."""
