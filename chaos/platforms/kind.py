"""A platform as one object: what it carries, needs and leaves, and the maker of its nodes.

Each platform declares its own in ``chaos/platforms/<name>/kind.py``, which imports nothing heavy: the functions that it
names import the code for an engine, a client or a host when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from chaos.base import registry as registries
from chaos.base.registry import REINSTALL, RegistryError
from chaos.machine.probe import Machine, Probe
from chaos.plan.platform_traits import PlatformTraits
from chaos.platforms.surfaces import ON_THIS_HOST
from chaos.scenario.errors import Problem
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Model

if TYPE_CHECKING:
    from chaos.machine.job.protocol import Platform
    from chaos.platforms.nodes import NodePlatform

GROUP = "platforms"

Complaint: TypeAlias = "Problem | tuple[str, str, str]"
"""A problem of a scenario: a problem with its place, or a path in the scenario, a message and a hint."""

Arguments: TypeAlias = Mapping[str, Any]
"""Arguments of the undo step END_NODES."""


@dataclass(frozen=True)
class Unsupported:
    """Why a platform cannot carry faults on something, and what to use in its place."""

    reason: str
    instead: str


@dataclass(frozen=True)
class Inventory:
    """The hosts of a file: the settings that a scenario would have for them, and their number."""

    settings: Model
    hosts: int


def no_problems(scenario: Scenario, directory: Path) -> Iterator[Complaint]:
    """Return no problems."""
    del scenario, directory
    return iter(())


def no_inputs(scenario: Scenario, directory: Path) -> Mapping[str, str]:
    """Return no inputs."""
    del scenario, directory
    return {}


@dataclass(frozen=True)
class PlatformKind:
    """A platform.

    Identity:
        name: as in a scenario.
        make: returns the starter of jobs, or the maker of nodes, there.
        order: its place where platforms are listed; the lower, the nearer to this host.
        settings: the key of ``cluster`` with a scenario's settings for it; None for none. ``needs_settings``: it
            needs them.
        network: name of the platform that takes its place where nodes are to have a network that faults can act on
            (``cluster.network``); None where there is none. Older scenarios name that platform themselves.
        traits: the facts that the plan needs.

    Faults:
        carries: the objects that faults may act on, keys of :data:`chaos.platforms.surfaces.SURFACES`.
            ``unsupported``: why not others, where the name alone does not explain it.
        shows: the objects whose examples of faults use this platform.
        changeable: names of the cluster's nodes that a scenario lets faults change.

    Needs:
        needs: names of probes. ``needs_for`` takes their place where one scenario needs less than another.
        meets: needs of jobs and faults that its own machines meet, and the machine in words; so does ``meets_for``.
        probes: the probes of its own, by name.
        problems: finds the problems of a scenario on it. Starts nothing.
        inputs: fingerprints of files of its own that decide about a job. Raises PlatformError.
        by_inventory: reads a file of hosts that the command line names. Raises ScenarioError.

    Nodes:
        own_limits: ranks have the limits of the process that starts them.
        own_memory: the advice for a job that keeps checkpoints in memory, where no node could load the checkpoints
            of another; empty where nodes share one memory.
        own_environment: they have an environment of their own, a container's or a login's, and a job there gets nothing
            of the harness's.
        elsewhere: they are other machines.

    Leftovers:
        left: searches for the leftovers of a killed run's nodes, by more than its label; None where the platform's
            own answer (:class:`chaos.platforms.nodes.TellsLeft`) is complete. Raises PlatformError.
        in_kernel: the network of its nodes is inside this host's kernel, so none of it may be in the host's own.
        caller_access: the arguments of a foreign undo step with the caller's own access; None: no such step is done.
            Raises PlatformError.

    ``example`` is an example of its settings in a scenario's ``cluster``.
    """

    name: str
    make: Callable[[], Platform | NodePlatform]
    order: int = 100
    settings: str | None = None
    needs_settings: bool = False
    network: str | None = None
    traits: PlatformTraits = field(default_factory=PlatformTraits)
    carries: frozenset[str] = ON_THIS_HOST
    unsupported: Mapping[str, Unsupported] = field(default_factory=dict)
    shows: frozenset[str] = frozenset()
    changeable: Callable[[Scenario], tuple[str, ...]] = lambda scenario: ()
    needs: tuple[str, ...] = ()
    needs_for: Callable[[Scenario], tuple[str, ...]] | None = None
    meets: Mapping[str, str] = field(default_factory=dict)
    meets_for: Callable[[Scenario], Mapping[str, str]] | None = None
    probes: Mapping[str, Callable[[Machine], Probe]] = field(default_factory=dict)
    problems: Callable[[Scenario, Path], Iterator[Complaint]] = no_problems
    inputs: Callable[[Scenario, Path], Mapping[str, str]] = no_inputs
    by_inventory: Callable[[Path], Inventory] | None = None
    own_limits: bool = False
    own_memory: str = ""
    own_environment: bool = False
    elsewhere: bool = False
    left: Callable[[Arguments, str, Path], Sequence[str]] | None = None
    in_kernel: bool = False
    caller_access: Callable[[Arguments, Path | None], Arguments] | None = None
    example: Mapping[str, Any] = field(default_factory=dict)

    def needed(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the names of the probes that must succeed for a scenario."""
        return self.needs if self.needs_for is None else self.needs_for(scenario)

    def met(self, scenario: Scenario) -> Mapping[str, str]:
        """Return the needs of a scenario's job and faults that the platform's machines meet, by machine."""
        return self.meets if self.meets_for is None else self.meets_for(scenario)

    def settings_in(self, scenario: Scenario) -> object:
        """Return a scenario's settings for the platform; None for none."""
        return None if self.settings is None else getattr(scenario.cluster, self.settings, None)


def platform_kind(name: str) -> PlatformKind:
    """Return the platform of that name.

    Raises RegistryError where it cannot be loaded, UnknownName where there is none.
    """
    members = registries.registry(GROUP)
    kind = members.load(name)
    if not isinstance(kind, PlatformKind):
        raise RegistryError(
            f"the platform {name!r} is registered as {members.points[name].value}, which is no PlatformKind "
            f"(chaos/platforms/kind.py); {REINSTALL}"
        )
    return kind


def platform_names() -> tuple[str, ...]:
    """Return the names of all platforms that are registered. Imports none of them."""
    return registries.registry(GROUP).names()


def platform_kinds() -> list[PlatformKind]:
    """Return all platforms that are registered, in their order."""
    return sorted(map(platform_kind, platform_names()), key=lambda kind: (kind.order, kind.name))


def built_in_kind(name: str) -> PlatformKind | None:
    """Return the platform of that name where it is this project's own; None for another package's, and for none."""
    known = name in registries.registry(GROUP).points and registries.package_of(GROUP, name) is None
    return platform_kind(name) if known else None


def with_inventory() -> tuple[str, ...]:
    """Return the names of the platforms whose hosts the command line may name."""
    return tuple(kind.name for kind in platform_kinds() if kind.by_inventory is not None)
