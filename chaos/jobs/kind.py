"""What a job kind is: how a job is started, and what of it can be observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from chaos.base import registry as registries
from chaos.machine.job.protocol import Place
from chaos.machine.probe import Machine, Probe
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


@dataclass(frozen=True)
class Examined:
    """What the plan has to know of a job from its own files: its traits, and what they forbid, each with its place.

    ``remarks`` are conditions that the files do not keep and that nobody refuses: the plan gives them as reasons.
    """

    traits: JobTraits
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()


class JobKind(ABC):
    """A kind of job. Each kind derives from it, and has what stands here unless it says otherwise."""

    name: str
    """Its name in scenarios."""

    traits: JobTraits
    """What of a job can be observed, and how it saves."""

    needs: tuple[str, ...] = ()
    """Names of probes of :mod:`chaos.doctor`, or of its own, that must succeed where the job runs."""

    probes: Mapping[str, Callable[[Machine], Probe]] = MappingProxyType({})
    """Its own probes by name."""

    ports: int = 0
    """How many TCP ports a launch needs."""

    extensions: tuple[str, ...] = ()
    """Modules that the agent installs before the job starts; none where it comes as a callback, which is too late."""

    examples: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """Examples of faults that it shows: the effect of a fault kind, or what it acts on, and what the job says beside
    its kind. ``any`` stands for all others. Each is in one job kind only."""

    @abstractmethod
    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """What is not genuine when this scenario runs."""

    @abstractmethod
    def prepare(self, launch: Launch) -> None:
        """Make what the job reads (data, directories). Raises JobError."""

    @abstractmethod
    def command(self, launch: Launch) -> Command:
        """Return how to start it. Raises JobError."""

    @abstractmethod
    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """What of the job's own files decides about its losses; part of the baseline's key."""

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Return names of the probes that this scenario's job needs, where one scenario needs less than another."""
        del scenario
        return self.needs

    def missing_files(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Each file of this machine that the scenario names and that does not do: its path in the scenario, a message
        and a hint. ``directory`` is the scenario's."""
        del scenario, directory
        return iter(())


class Configured(JobKind):
    """A job kind whose jobs are described by files of their own (``job.config``). Both methods only read."""

    @abstractmethod
    def completed(self, cell: Unfinished) -> Completion:
        """What the files say of keys that the scenario may leave out. Raises nothing: problems are part of it."""

    @abstractmethod
    def examined(self, cell: Cell, scenario_file: Path) -> Examined:
        """What the files mean for the plan. Raises ScenarioError where they cannot be read."""


def job_kind(name: str) -> JobKind:
    """The job kind of that name. Raises RegistryError where it cannot be loaded, UnknownName where there is none."""
    members = registries.registry("jobs")
    kind = members.load(name)
    if not isinstance(kind, JobKind):
        raise members.misfit(name, "chaos.jobs.kind.JobKind")
    # What has the methods of a configured kind and does not derive from it would never be asked what its files say.
    if Configured.__abstractmethods__ <= frozenset(dir(kind)) and not isinstance(kind, Configured):
        raise members.misfit(name, "chaos.jobs.kind.Configured")
    return kind


def job_kinds() -> list[JobKind]:
    """Return all job kinds that are registered, by their names. Raises RegistryError where one cannot be loaded."""
    return list(map(job_kind, registries.registry("jobs").names()))
