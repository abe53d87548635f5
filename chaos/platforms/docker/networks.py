"""Containers whose network faults can change: not a network of the engine's, but one behind a router of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.remote.client import HelperClient
from chaos.platforms.docker.engine import NODE_LABEL
from chaos.platforms.docker.kind import NETWORKS_NAME
from chaos.platforms.docker.node import DockerNode
from chaos.platforms.docker.platform import DockerNodes, DockerPlatform
from chaos.platforms.docker.processes import first_process
from chaos.platforms.network.addressing import address_of
from chaos.platforms.network.holder import HeldRouter, own_namespace
from chaos.platforms.network.router import Router
from chaos.platforms.nodes import Site
from chaos.scenario.models.docker import Docker

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container


class DockerNetworksPlatform(DockerPlatform):
    """Makes nodes of containers that the engine gives no network, and connects them to the run's own."""

    name = NETWORKS_NAME

    def simulated(self, nodes: int) -> str | None:
        """Return the difference from a cluster: the network is inside the kernel of the engine's host."""
        return f"{super().simulated(nodes)}, behind a router of the run's own"

    def nodes_of(self, site: Site, settings: Docker, client: DockerClient) -> RoutedContainers:
        """Return the nodes, not made yet."""
        return RoutedContainers(site, settings, client)

    def restore(self, arguments: Mapping[str, Any], token: str, node: int, what: str) -> str:
        """Put back what a fault has done to a node; without the harness there is nothing to connect it to."""
        if what == "connect":
            return "the network of the run has gone with its harness"
        return super().restore(arguments, token, node, what)


@dataclass
class RoutedNode(DockerNode):
    """A container on the run's own network; network faults ask its router."""

    node_network: Router

    def rules_left(self) -> list[str]:
        """Return the rules of faults that are left on its links."""
        return self.node_network.left(self.number)

    def is_connected(self) -> bool:
        """Return whether the router's end of its link is up. A container that has ended has taken its link with it."""
        return self.node_network.is_joined(self.number) and self.node_network.is_connected(self.number)

    def disconnect(self) -> None:
        """Take the router's end of its link down."""
        self.node_network.disconnect(self.number)

    def restore(self, what: str) -> str:
        """Undo the change that a fault has made to the node."""
        if what != "connect":
            return super().restore(what)
        self.node_network.connect(self.number)
        return f"node {self.number} is on the network again"


class RoutedContainers(DockerNodes):
    """The nodes of one run, and the router between them."""

    def __init__(self, site: Site, settings: Docker, client: DockerClient) -> None:
        super().__init__(site, settings, client)
        self._held: HeldRouter | None = None

    def close(self) -> None:
        """Close the remote helpers, then the router."""
        super().close()
        if self._held is not None:
            self._held.close()
            self._held = None

    def make_network(self) -> dict[str, Any]:
        """Make the router; return the container options for nothing but a loopback from the engine."""
        self._held = HeldRouter(self._site.run_dir, self._site.clock)
        return {"network_mode": "none"}

    def address_of(self, container: Container) -> str:
        """Return the container's address on the run's network, after connecting it where it is not connected."""
        assert self._held is not None
        router, number = self._held.router, int(container.labels[NODE_LABEL])
        if not router.is_joined(number):
            return router.join(number, self._namespace(container))
        router.connect(number)
        return address_of(number)

    def node_of(
        self, number: int, address: str, container: Container, helper: HelperClient, started: str
    ) -> RoutedNode:
        """Return a node whose remote helper answers."""
        assert self._held is not None
        private = self._site.private / f"node-{number}"
        return RoutedNode(number, address, private, container, None, helper, started, node_network=self._held.router)

    def _namespace(self, container: Container) -> Namespace:
        """Return the network namespace of a container. Raises PlatformError where its processes are not this host's."""
        return own_namespace(first_process(container), self._site.clock)
