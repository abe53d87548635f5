"""The platform ``docker``, and ``docker-networks``, on which the engine gives the containers no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.docker.probe import docker, docker_image
from chaos.platforms.kind import Complaint, PlatformKind
from chaos.platforms.remote_requirements import MET_THERE
from chaos.platforms.surfaces import NAMES, NETWORK
from chaos.platforms.unsupported import without_names
from chaos.scenario.local_files import directory_problem
from chaos.scenario.models.defaults import SKELETON
from chaos.scenario.models.docker import Docker
from chaos.scenario.models.scenario import Scenario

if TYPE_CHECKING:
    from chaos.platforms.docker.networks import DockerNetworksPlatform
    from chaos.platforms.docker.platform import DockerPlatform

_ENGINE = ("docker",)
_IMAGE = ("docker-image",)
NETWORKS_NAME = "docker-networks"


def _platform() -> DockerPlatform:
    from chaos.platforms.docker.platform import DockerPlatform

    return DockerPlatform()


def _networks() -> DockerNetworksPlatform:
    from chaos.platforms.docker.networks import DockerNetworksPlatform

    return DockerNetworksPlatform()


def _needs(scenario: Scenario) -> tuple[str, ...]:
    """Return the probe of the engine at DOCKER_HOST, with its default image unless the scenario names another.

    A scenario that names an engine needs nothing of this machine.
    """
    settings = scenario.cluster.docker or Docker()
    if settings.engine is not None:
        return ()
    return _IMAGE if settings.image == SKELETON else _ENGINE


def _needs_with_networks(scenario: Scenario) -> tuple[str, ...]:
    """Return the probes of the engine and its image, and of namespaces of this host."""
    return (*_needs(scenario), "network-namespaces")


def _met(scenario: Scenario) -> Mapping[str, str]:
    """Return the needs that the containers meet themselves: an image with its own Python has all that ranks need."""
    settings = scenario.cluster.docker
    return {} if settings is None or settings.python is None else MET_THERE


def _problems(scenario: Scenario, directory: Path) -> Iterator[Complaint]:
    """Yield the problems of ``cluster.docker``. The engine is not asked."""
    from chaos.platforms.docker.subnets import complaint

    del directory
    settings = scenario.cluster.docker
    for number, name in enumerate(() if settings is None else settings.readable):
        if why := directory_problem(Path(name)):
            yield f"cluster.docker.readable.{number}", f"{name}: {why}", "name directories of this host"
    for number, subnet in enumerate(() if settings is None else settings.subnets):
        if (why := complaint(subnet, scenario.cluster.nodes)) is not None:
            yield f"cluster.docker.subnets.{number}", why, "name private subnets that nothing else here uses"


def _left(arguments: Mapping[str, Any], token: str, run_dir: Path) -> Sequence[str]:
    from chaos.platforms.docker.search import search_engine

    return search_engine(arguments, token, run_dir)


def of_own_engine(arguments: Mapping[str, Any], inventory: Path | None) -> Mapping[str, Any]:
    """Return the arguments for the caller's engine. Raises PlatformError unless the step names that engine."""
    from chaos.platforms.docker.engine import address_of

    del inventory
    engine, own_engine = arguments.get("engine"), address_of(None)
    if engine != own_engine:
        refusal = f"its Docker engine is {engine!r}, and yours is {own_engine!r}: if it is that, set DOCKER_HOST to it"
        raise PlatformError(refusal)
    if not isinstance(arguments.get("identity"), str) or not arguments["identity"]:
        raise PlatformError("it does not say which Docker engine it means, so yours cannot be held against it")
    return arguments


KIND = PlatformKind(
    name="docker",
    make=_platform,
    order=20,
    settings="docker",
    network=NETWORKS_NAME,
    carries=frozenset({"process", "agent", "files", "node", NAMES}),
    shows=frozenset({"node", NAMES}),
    needs=_ENGINE,
    needs_for=_needs,
    meets_for=_met,
    probes={"docker": docker, "docker-image": docker_image},
    problems=_problems,
    own_environment=True,
    left=_left,
    caller_access=of_own_engine,
)

NETWORKS = replace(
    KIND,
    name=NETWORKS_NAME,
    make=_networks,
    order=21,
    network=None,
    carries=(KIND.carries | {NETWORK}) - {NAMES},
    unsupported=without_names("a container there has no network of the engine's, and so nothing that resolves names"),
    shows=frozenset(),
    needs_for=_needs_with_networks,
    probes={},
    in_kernel=True,
)
