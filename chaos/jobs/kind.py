"""The base class of job kinds: how a job starts, and which of its facts can be observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
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
    """The job cannot be prepared. The text names the missing part and the remedy."""


@dataclass(frozen=True)
class Launch:
    """The facts that a job kind needs to start one attempt.

    ``directory`` is the job's working directory, ``logs`` the attempt's log directory; both exist. ``resume`` says that
    training goes on from an end-of-life checkpoint. ``ports`` are leased: as many as the kind's ``ports`` asks for.
    ``python`` is the interpreter of the ranks. ``sdk`` is ``standin`` or ``vendor``. ``place`` is the part of the job
    that one node's launcher starts; None if one launcher starts all of it on this host.
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
        """The address of the node of scheduler and controller."""
        return "127.0.0.1" if self.place is None else self.place.master


@dataclass(frozen=True)
class Command:
    """The command of the launcher. ``environment`` is added to the harness's own; ``path`` goes before PYTHONPATH.

    ``agent_by_path``: the agent is on PYTHONPATH too. Otherwise the job loads it as ``environment`` says.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    path: tuple[Path, ...] = ()
    agent_by_path: bool = True


@dataclass(frozen=True)
class Simulated:
    """A part that is not genuine, and its layer."""

    part: str
    layer: str


@dataclass(frozen=True)
class Examined:
    """Facts from a job's own files for the plan: its traits, and what they forbid, each with its place.

    ``remarks`` are conditions that the files do not meet and that no program refuses: the plan gives them as reasons.
    """

    traits: JobTraits
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()


class JobKind(ABC):
    """A kind of job. Each kind derives from this class, and overrides its attributes where needed."""

    name: str
    """Its name in scenarios."""

    traits: JobTraits
    """Facts of the job that can be observed, and its way of saving."""

    needs: tuple[str, ...] = ()
    """Names of probes of :mod:`chaos.doctor`, or of its own, that must succeed on the job's machine."""

    probes: Mapping[str, Callable[[Machine], Probe]] = MappingProxyType({})
    """Its own probes by name."""

    ports: int = 0
    """How many TCP ports a launch needs."""

    plans_only: str | None = None
    """Why jobs of this kind are planned and not run; None where they are run."""

    extensions: tuple[str, ...] = ()
    """Modules that the agent installs before the job starts; none if it comes as a callback, which is too late."""

    examples: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """Examples of faults that it shows: the effect of a fault kind, or its object, and the keys of the job beside
    its kind. ``any`` stands for all others. Each is in one job kind only."""

    @abstractmethod
    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return the parts that are not genuine when this scenario runs."""

    @abstractmethod
    def prepare(self, launch: Launch) -> None:
        """Make the job's input (data, directories). Raises JobError."""

    @abstractmethod
    def command(self, launch: Launch) -> Command:
        """Return how to start it. Raises JobError."""

    @abstractmethod
    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the facts in the job's own files that decide about its losses; they are part of the baseline's key."""

    def traits_for(self, scenario: Scenario, directory: Path, elsewhere: Collection[str]) -> JobTraits:
        """Return the traits of a scenario's job, if they depend on its keys or on the installed packages.

        ``directory`` is the scenario's. ``elsewhere`` are the needs that other machines than this one meet.
        """
        del scenario, directory, elsewhere
        return self.traits

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Return names of the probes that this scenario's job needs, if one scenario needs less than another."""
        del scenario
        return self.needs

    def needs_beside(self, scenario: Scenario, directory: Path) -> tuple[str, ...]:
        """Return the needs of this scenario's job, where its own files may show that it needs less than others.

        ``directory`` is the scenario's. The files are only read.
        """
        del directory
        return self.needs_for(scenario)

    def own_python(self, scenario: Scenario, directory: Path) -> Path | None:
        """Return the interpreter of the ranks that the scenario in ``directory`` names; None for that of the platform.

        Raises JobError.
        """
        del scenario, directory
        return None

    def interpreter_probe(self, scenario: Scenario, directory: Path) -> Probe | None:
        """Return whether the interpreter that the scenario in ``directory`` names can run its ranks; None for none."""
        del scenario, directory
        return None

    def missing_files(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Yield each unusable file of this machine that the scenario names: its path in the scenario, a message
        and a hint. ``directory`` is the scenario's."""
        del scenario, directory
        return iter(())

    def complete_drawn(self, draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> None:
        """Complete the sections of a random scenario with what a job of this kind needs."""
        del draw, cluster, job

    def drawn_files(self) -> tuple[Path, ...]:
        """Return the files that random scenarios name, to be copied beside them."""
        return ()

    def remarks(self, scenario: Scenario) -> Iterator[str]:
        """Yield what the plan of this scenario's job does not hold although its keys speak of it."""
        del scenario
        return iter(())


class Configured(JobKind):
    """A job kind with jobs described by files of their own (``job.config``). Both methods only read."""

    @abstractmethod
    def completed(self, cell: Unfinished) -> Completion:
        """Return the files' values of keys that the scenario may leave out. Problems are part of it; raises nothing."""

    @abstractmethod
    def examined(self, cell: Cell, scenario_file: Path) -> Examined:
        """Return the meaning of the files for the plan. Raises ScenarioError if they cannot be read."""


def job_kind(name: str) -> JobKind:
    """Return the job kind of that name. Raises RegistryError if it cannot be loaded, UnknownName if there is none."""
    members = registries.registry("jobs")
    kind = members.load(name)
    if not isinstance(kind, JobKind):
        raise members.misfit(name, "chaos.jobs.kind.JobKind")
    # What has the methods of a configured kind and does not derive from it would never be asked what its files say.
    if Configured.__abstractmethods__ <= frozenset(dir(kind)) and not isinstance(kind, Configured):
        raise members.misfit(name, "chaos.jobs.kind.Configured")
    return kind


def job_kinds() -> list[JobKind]:
    """Return all registered job kinds, by their names. Raises RegistryError if one cannot be loaded."""
    return list(map(job_kind, registries.registry("jobs").names()))
