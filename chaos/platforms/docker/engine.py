"""Reaching a Docker engine, and its objects of one run: everything that carries the run's label."""

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
"""Label of every container and network that a run makes; its value is the run's identity."""

NODE_LABEL = "chaos.node"

IMAGE_LABEL = "chaos.image"
"""Label of images that ``chaos image`` has made; ``skeleton`` for an image that borrows this host's Python."""

_SECONDS = 60


def connect(engine: str | None) -> DockerClient:
    """Return the engine at that address (``unix:///path``, ``tcp://host:port``), or the engine that DOCKER_HOST names.

    Raises PlatformError where the package or the engine is missing.
    """
    try:
        import docker
    except ImportError as error:
        raise PlatformError("the package docker is not installed: pip install 'chaos-ascend[docker]'") from error
    with engine_errors("the Docker engine cannot be reached"):
        client: DockerClient = (
            docker.from_env(timeout=_SECONDS)  # with the address's certificates
            if engine in (None, os.environ.get("DOCKER_HOST"))
            else docker.DockerClient(engine, timeout=_SECONDS)
        )
        client.ping()
        return client


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn exceptions of the engine's client into PlatformError; ``what`` is the action."""
    import requests
    from docker.errors import DockerException

    try:
        yield
    except (DockerException, requests.RequestException, OSError) as error:
        raise PlatformError(f"{what}: {error}") from error


def address_of(engine: str | None) -> str:
    """Return the address by which ``connect`` reaches that engine again, in a process with another DOCKER_HOST."""
    return engine or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def identity_of(client: DockerClient) -> str:
    """Return the engine's identity, the same at every address. Raises PlatformError."""
    with engine_errors("the Docker engine does not say which one it is"):
        return str(client.info().get("ID") or "")


def connect_again(arguments: Mapping[str, Any]) -> DockerClient:
    """Return the engine of a run, by the arguments of its undo step.

    Raises PlatformError where another engine answers.
    """
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
    for container in containers_of(client, token):
        if container.labels.get(NODE_LABEL) == str(node):
            return container
    return None


def remove_run_objects(client: DockerClient, token: str) -> list[str]:
    """Remove every container and network of a run, and return their names. It may be called twice."""
    from docker.errors import NotFound

    done = []
    for container in containers_of(client, token):
        with contextlib.suppress(NotFound):
            if container.status == "paused":
                container.unpause()  # SIGKILL does not end a frozen process
            container.remove(force=True, v=True)
            done.append(f"container {container.name}")
    for network in client.networks.list(filters={"label": f"{RUN_LABEL}={token}"}):
        with contextlib.suppress(NotFound):
            network.remove()
            done.append(f"network {network.name}")
    return done


def objects_of(client: DockerClient, token: str) -> list[str]:
    """Return the containers and networks of a run, in words."""
    networks = client.networks.list(filters={"label": f"{RUN_LABEL}={token}"})
    containers = [f"container {container.name}" for container in containers_of(client, token)]
    return [*containers, *(f"network {network.name}" for network in networks)]


def state_of(container: Container) -> dict[str, Any]:
    """Return the engine's present state of a container (``docker inspect``, State)."""
    container.reload()
    state: dict[str, Any] = container.attrs["State"]
    return state
