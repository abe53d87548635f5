"""The nodes of a run as containers of one engine, on a network of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chaos
from chaos.base.clock import Clock
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.machine.remote.bundle import bundle_in, write_bundle
from chaos.machine.remote.client import HelperClient
from chaos.platforms.docker.engine import (
    IMAGE_LABEL,
    NODE_LABEL,
    RUN_LABEL,
    address_of,
    connect,
    connect_again,
    engine_errors,
    identity_of,
    node_container,
    objects_of,
    remove_run_objects,
    state_of,
)
from chaos.platforms.docker.image import borrowed, outermost
from chaos.platforms.docker.kind import KIND
from chaos.platforms.docker.limits import CGROUPS
from chaos.platforms.docker.node import DockerNode, restore
from chaos.platforms.docker.subnets import make_network
from chaos.platforms.docker.transport import ExecTransport
from chaos.platforms.node_set import NodeSet
from chaos.platforms.nodes import END_NODES, Site
from chaos.platforms.remote_requirements import Asked, refuse_lacking
from chaos.scenario.models.docker import Docker

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.networks import Network

_SHARED_MEMORY = 1 << 30
_KEEPER = "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True: signal.pause()\n"
"""The first process of a container: keeps it running, and reaps its orphans. It ignores SIGTERM."""


class DockerPlatform:
    """Makes nodes of containers."""

    name = KIND.name

    def simulated(self, nodes: int) -> str | None:
        """Return the difference from a cluster: the nodes share the engine's host."""
        return f"{nodes} node{'s' if nodes > 1 else ''}: containers on the host of one Docker engine"

    def open(self, site: Site) -> DockerNodes:
        """Make the network and the containers, and start a remote helper in each."""
        settings = _settings(site)
        client = connect(settings.engine)
        arguments = {
            "platform": self.name,
            "engine": address_of(settings.engine),
            "identity": identity_of(client),
            "python": _python(site, settings),
        }
        site.ledger.record(UndoStep("nodes", None, END_NODES, arguments, "remove the run's containers and network"))
        nodes = self.nodes_of(site, settings, client)
        try:
            nodes.make()
            nodes.ready()
            nodes.check()
        except BaseException:
            nodes.close()
            raise
        return nodes

    def nodes_of(self, site: Site, settings: Docker, client: DockerClient) -> DockerNodes:
        """Return the nodes, not made yet."""
        return DockerNodes(site, settings, client)

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """Remove the objects that carry the run's label."""
        del clock
        client = connect_again(arguments)
        try:
            with engine_errors("what the run has made in the Docker engine cannot be removed"):
                done = remove_run_objects(client, token)
        finally:
            client.close()
        return f"removed {', '.join(done)}" if done else "there is nothing of the run in the Docker engine"

    def left(self, arguments: Mapping[str, Any], token: str) -> Sequence[str]:
        """Return the containers and networks that carry the run's label."""
        client = connect_again(arguments)
        try:
            with engine_errors("the Docker engine does not say what it has of the run"):
                return objects_of(client, token)
        finally:
            client.close()

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HelperClient | None:
        """Return another helper in the node's container."""
        client = connect_again(arguments)
        try:
            with engine_errors(f"node {node}"):
                container = node_container(client, token, node)
            if container is None or container.status in _NO_MORE:
                client.close()
                return None
            if container.status != "running":
                raise PlatformError(f"node {node} is {container.status}: nothing can be done on it until it goes on")
            return _Again(client, container, str(arguments["python"]), node, token)
        except BaseException:
            client.close()
            raise

    def restore(self, arguments: Mapping[str, Any], token: str, node: int, what: str) -> str:
        """Put back what a fault has done to a node, in another process than the fault's."""
        client = connect_again(arguments)
        try:
            container = node_container(client, token, node)
            if container is None:
                return f"node {node} is no more"
            network = client.networks.get(network_name(token)) if what == "connect" else None
            return restore(container, network, node, what)
        finally:
            client.close()


_PRIVATE_LABEL = "chaos.private"

_NO_MORE = ("exited", "dead", "removing")
"""The engine's states of a container that nothing runs in any more; a paused container may go on."""


class _Again(HelperClient):
    """A remote helper with its own client of the engine."""

    def __init__(self, client: DockerClient, container: Container, python: str, node: int, token: str) -> None:
        self._own = client
        command = _helper(python, str(container.labels[_PRIVATE_LABEL]))
        super().__init__(ExecTransport(container, command), node, token)

    def close(self) -> None:
        """Close the helper and the client."""
        super().close()
        self._own.close()


class DockerNodes(NodeSet[DockerNode]):
    """The nodes of one run."""

    def __init__(self, site: Site, settings: Docker, client: DockerClient) -> None:
        super().__init__(site)
        self._settings = settings
        self._client = client
        self._network: Network | None = None
        self._containers: list[Container] = []

    @property
    def python(self) -> Path:
        """The interpreter of the ranks."""
        return Path(_python(self._site, self._settings))

    def make(self) -> None:
        """Make the network and the containers; nothing of the job runs yet."""
        site = self._site
        write_bundle(site.private)
        name = network_name(site.token)
        network = self.make_network()
        mounts = self._mounts()
        for number in range(site.nodes):
            with engine_errors(f"node {number} cannot be made of image {self._settings.image}"):
                self._containers.append(
                    self._client.containers.create(
                        self._settings.image,
                        [str(self.python), "-I", "-c", _KEEPER],
                        name=f"{name}-{number}",
                        hostname=f"node-{number}",
                        **network,
                        mounts=mounts,
                        user=f"{os.geteuid()}:{os.getegid()}",
                        shm_size=_SHARED_MEMORY,
                        labels={
                            RUN_LABEL: site.token,
                            NODE_LABEL: str(number),
                            _PRIVATE_LABEL: str(site.private),
                        },
                    )
                )

    def make_network(self) -> dict[str, Any]:
        """Make the network, and return the options that create a container on it."""
        name = network_name(self._site.token)
        self._network = make_network(self._client, name, self._site.token, self._settings.subnets)
        return {"network": name}

    def ready(self) -> Sequence[DockerNode]:
        """Return all nodes, each running and with a helper that answers; a node ended by a fault is restarted."""
        for number, container in enumerate(self._containers):
            node = self._nodes.get(number)
            if node is None or node.helper.lost is not None or node.known == "gone" or node.state() != "running":
                self._nodes[number] = self._started(number, container)
                self._nodes[number].python = str(self.python)
            else:
                node.address = self.address_of(container)
        return self.all()

    def check(self) -> None:
        """Check that the image has everything the ranks need; all containers share it. Raises PlatformError."""
        image, advice = self._settings.image, "make the image with it, or name another cluster.docker.python"
        refuse_lacking(self._site, [Asked(f"image {image}", str(self.python), self._nodes[0].helper)], advice)

    def close(self) -> None:
        """Close the remote helpers and the engine's client."""
        super().close()
        self._client.close()

    def _started(self, number: int, container: Container) -> DockerNode:
        site = self._site
        before = self._nodes.get(number)
        if before is not None:
            before.helper.close()
        with engine_errors(f"node {number} cannot be started"):
            container.reload()
            if container.status == "paused":
                container.unpause()
            container.start()
        address = self.address_of(container)
        transport = ExecTransport(container, _helper(str(self.python), str(site.private)))
        helper = HelperClient(transport, number, site.token, site.visitors)
        helper.open_roots([CGROUPS])
        started = str(state_of(container)["StartedAt"])
        return self.node_of(number, address, container, helper, started)

    def node_of(
        self, number: int, address: str, container: Container, helper: HelperClient, started: str
    ) -> DockerNode:
        """Return a node whose remote helper answers; ``started`` is its start time by the engine."""
        place = self._site.private / f"node-{number}"
        return DockerNode(number, address, place, container, self._network, helper, started)

    def address_of(self, container: Container) -> str:
        """Return the container's address on the run's network, connecting it again if needed; it may have changed."""
        assert self._network is not None
        with engine_errors(f"{container.name} is not on the network of the run"):
            container.reload()
            if self._network.name not in container.attrs["NetworkSettings"]["Networks"]:
                self._network.connect(container)
                container.reload()
            return str(container.attrs["NetworkSettings"]["Networks"][self._network.name]["IPAddress"])

    def _mounts(self) -> list[Any]:
        """Return the run's directories and the job's inputs, at the paths that they have here."""
        from docker.types import Mount

        site = self._site
        writable = outermost((site.run_dir, site.private, *site.writable))
        paths = [*site.readable, *map(Path, self._settings.readable), Path(chaos.__file__).parent]
        with engine_errors(f"there is no image {self._settings.image}: make one with chaos image"):
            image = self._client.images.get(self._settings.image)
        if image.labels.get(IMAGE_LABEL) == "skeleton":
            paths += borrowed()
        readable = [path for path in outermost(paths) if path not in writable]
        for path in readable:
            if not path.exists():
                raise PlatformError(f"cluster.docker.readable: there is no {path} on this host")
        return [
            *(Mount(str(path), str(path), type="bind", read_only=True) for path in readable),
            *(Mount(str(path), str(path), type="bind") for path in writable),
        ]


def network_name(token: str) -> str:
    """Return the name of a run's network; its containers have it with their node's number."""
    return f"chaos-{token[-16:]}"


def _settings(site: Site) -> Docker:
    return site.settings if isinstance(site.settings, Docker) else Docker()


def _python(site: Site, settings: Docker) -> str:
    return settings.python or str(site.python)


def _helper(python: str, private: str) -> tuple[str, ...]:
    return (python, "-I", str(bundle_in(Path(private))))
