"""Reaching a Docker engine, and what of it belongs to one run: everything that carries the run's label."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from chaos.machine.job.protocol import PlatformError

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

RUN_LABEL = "chaos.run"
"""On every container and network that a run makes; its value is the run's identity."""

NODE_LABEL = "chaos.node"

IMAGE_LABEL = "chaos.image"
"""On images that ``chaos image`` has made; ``skeleton`` for one that borrows this host's Python."""

_SECONDS = 60


def connect(engine: str | None) -> DockerClient:
    """Return the engine at that address (``unix:///path``, ``tcp://host:port``), or the one that DOCKER_HOST names.

    Raises PlatformError where the package or the engine is missing.
    """
    try:
        import docker
    except ImportError as error:
        raise PlatformError("the package docker is not installed: pip install 'chaos-ascend[docker]'") from error
    with engine_errors("the Docker engine cannot be reached"):
        client: DockerClient = (
            docker.from_env(timeout=_SECONDS)  # with the certificates that belong to it
            if engine in (None, os.environ.get("DOCKER_HOST"))
            else docker.DockerClient(engine, timeout=_SECONDS)
        )
        client.ping()
        return client


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn what the engine's client raises into PlatformError, with what was being done."""
    import requests
    from docker.errors import DockerException

    try:
        yield
    except (DockerException, requests.RequestException, OSError) as error:
        raise PlatformError(f"{what}: {error}") from error


def address_of(engine: str | None) -> str:
    """The address by which ``connect`` reaches that engine again, in a process that may have another DOCKER_HOST."""
    return engine or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def identity_of(client: DockerClient) -> str:
    """What tells an engine from others, whatever its address. Raises PlatformError."""
    with engine_errors("the Docker engine does not say which one it is"):
        return str(client.info().get("ID") or "")


def connect_again(arguments: Mapping[str, Any]) -> DockerClient:
    """The engine of a run, as the arguments of its undo step say. Raises PlatformError where another one answers."""
    client = connect(str(arguments["engine"]))
    recorded = arguments.get("identity")
    try:
        if recorded and identity_of(client) != recorded:
            raise PlatformError(
                f"another Docker engine answers at {arguments['engine']} than the run's: nothing was touched; let the "
                "run's own answer there, and run chaos heal again"
            )
    except BaseException:
        client.close()
        raise
    return client


def containers_of(client: DockerClient, token: str) -> list[Container]:
    """Return the containers of a run, whatever their state."""
    return client.containers.list(all=True, filters={"label": f"{RUN_LABEL}={token}"}, ignore_removed=True)


def node_container(client: DockerClient, token: str, node: int) -> Container | None:
    """Return the container that is a node of a run; None when there is none."""
    for found in containers_of(client, token):
        if found.labels.get(NODE_LABEL) == str(node):
            return found
    return None


def take_away(client: DockerClient, token: str) -> list[str]:
    """Remove every container and network of a run, and say which. It may be done twice."""
    from docker.errors import NotFound

    done = []
    for container in containers_of(client, token):
        with contextlib.suppress(NotFound):
            if container.status == "paused":
                container.unpause()  # a frozen process does not end by SIGKILL
            container.remove(force=True, v=True)
            done.append(f"container {container.name}")
    for network in client.networks.list(filters={"label": f"{RUN_LABEL}={token}"}):
        with contextlib.suppress(NotFound):
            network.remove()
            done.append(f"network {network.name}")
    return done


def things_of(client: DockerClient, token: str) -> list[str]:
    """Return the containers and networks of a run, in words."""
    networks = client.networks.list(filters={"label": f"{RUN_LABEL}={token}"})
    containers = [f"container {container.name}" for container in containers_of(client, token)]
    return [*containers, *(f"network {network.name}" for network in networks)]


def state_of(container: Container) -> dict[str, Any]:
    """What the engine says of a container now (``docker inspect``, State)."""
    container.reload()
    state: dict[str, Any] = container.attrs["State"]
    return state
