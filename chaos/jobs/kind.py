"""The protocol of a job kind: how a job is started, and what of it can be observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from chaos.machine.job.protocol import Place
from chaos.plan.traits import JobTraits
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.errors import Problem
from chaos.scenario.models.scenario import Scenario

if TYPE_CHECKING:
    from chaos.scenario.load import Cell


class JobError(RuntimeError):
    """The job cannot be prepared. The text says what is missing and what to do."""


@dataclass(frozen=True)
class Launch:
    """What a job kind needs to know to start one attempt.

    ``directory`` is the job's working directory, ``logs`` the attempt's log directory; both exist. ``resume`` says that
    training goes on from an end-of-life checkpoint. ``ports`` are leased: as many as the kind's ``ports`` says.
    ``python`` is the interpreter of the ranks. ``sdk`` is ``standin`` or ``vendor``. ``place`` is the part of the job
    that one node's launcher starts; None where one launcher starts all of it on this host.
    """

    scenario: Scenario
    scenario_directory: Path
    directory: Path
    logs: Path
    resume: bool
    ports: tuple[int, ...]
    python: Path
    sdk: str
    place: Place | None = None

    @property
    def master(self) -> str:
        """The address of the node that scheduler and controller are on."""
        return "127.0.0.1" if self.place is None else self.place.master


@dataclass(frozen=True)
class Command:
    """How the launcher is started. ``environment`` is added to the harness's own; ``path`` goes before PYTHONPATH.

    ``agent_by_path``: the agent is on PYTHONPATH too. Otherwise the job loads it by what ``environment`` says.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    path: tuple[Path, ...] = ()
    agent_by_path: bool = True


@dataclass(frozen=True)
class Simulated:
    """A part that is not the genuine one, and the layer at which it is put in."""

    part: str
    layer: str


class JobKind(Protocol):
    """A kind of job.

    ``needs`` names probes of :mod:`chaos.doctor`, or of its own where it has some
    (:class:`chaos.machine.probe.BringsProbes`); ``ports`` counts the TCP ports of a launch. ``extensions`` are
    modules that the agent installs before the job starts; none where it comes as a callback, which is too late.
    """

    name: str
    traits: JobTraits
    needs: tuple[str, ...]
    ports: int
    extensions: tuple[str, ...]

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """What is not genuine when this scenario runs."""

    def prepare(self, launch: Launch) -> None:
        """Make what the job reads (data, directories). Raises JobError."""

    def command(self, launch: Launch) -> Command:
        """How to start it. Raises JobError."""

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """What of the job's own files decides about its losses; part of the baseline's key."""


class ShowsFaults(Protocol):
    """A job kind that examples of faults are shown with.

    ``examples`` maps the effect of a fault kind, or what it acts on, to what the job of such an example says beside its
    kind; ``any`` stands for all others. Each is in one job kind only.
    """

    examples: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Examined:
    """What the plan has to know of a job from its own files: its traits, and what they forbid, each with its place.

    ``remarks`` are conditions that the files do not keep and that nobody refuses: the plan gives them as reasons.
    """

    traits: JobTraits
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()


@runtime_checkable
class NeedsByScenario(Protocol):
    """A job kind of which one scenario needs less than another."""

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Names of probes of :mod:`chaos.doctor` that this scenario's job needs."""


@runtime_checkable
class NamesFiles(Protocol):
    """A job kind whose scenarios name files of this machine that have to be there."""

    def missing_files(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Each that does not do: its path in the scenario, a message and a hint. ``directory`` is the scenario's."""


@runtime_checkable
class Configured(Protocol):
    """A job kind whose jobs are described by files of their own (``job.config``). Both methods only read."""

    def completed(self, cell: Unfinished) -> Completion:
        """What the files say of keys that the scenario may leave out. Raises nothing: problems are part of it."""

    def examined(self, cell: Cell, scenario_file: Path) -> Examined:
        """What the files mean for the plan. Raises ScenarioError where they cannot be read."""
