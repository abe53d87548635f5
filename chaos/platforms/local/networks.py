"""Nodes of this host with a network of their own: each helper and its programs in a namespace behind a router."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.machine.remote.bundle import BUNDLE, write_bundle
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.transport import SubprocessTransport
from chaos.platforms.local.kind import NETWORKS_NAME
from chaos.platforms.local.nodes import LocalNode, LocalNodes, LocalNodesPlatform
from chaos.platforms.network.holder import HeldRouter, own_namespace
from chaos.platforms.network.router import Router
from chaos.platforms.nodes import END_NODES, Site


class LocalNetworksPlatform(LocalNodesPlatform):
    """Makes nodes of this host, each in a network namespace of its own."""

    name = NETWORKS_NAME

    def simulated(self, nodes: int) -> str | None:
        """Return the difference from a cluster: the nodes are one host, and their network is inside its kernel."""
        return f"{nodes} nodes: network namespaces on one host, behind a router of the run's own"

    def open(self, site: Site) -> LocalNetworks:
        """Make the router's namespace, then a remote helper in one of its own for each node."""
        site.ledger.record(
            UndoStep(
                "nodes", None, END_NODES, {"platform": self.name}, "end the remote helpers and the network of the run"
            )
        )
        write_bundle(site.private)
        nodes = LocalNetworks(site)
        try:
            nodes.begin()
            nodes.ready()
        except BaseException:
            nodes.close()
            raise
        return nodes


@dataclass
class NetworkNode(LocalNode):
    """A node on the router's network; network faults ask its router."""

    node_network: Router | None = None

    def rules_left(self) -> list[str]:
        """Return the rules of faults that are left on its links."""
        return [] if self.node_network is None else self.node_network.left(self.number)


class LocalNetworks(LocalNodes):
    """The nodes of one run, and the router between them."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._held: HeldRouter | None = None

    def begin(self) -> None:
        """Make the router."""
        self._held = HeldRouter(self._site.run_dir, self._site.clock)

    def close(self) -> None:
        """Close the remote helpers, then the router."""
        super().close()
        if self._held is not None:
            self._held.close()
            self._held = None

    def make(self, number: int) -> LocalNode:
        """Return a node with a remote helper in a namespace of its own, connected to the router."""
        assert self._held is not None
        site = self._site
        argv = ("unshare", "--net", "--", str(site.python), "-I", str(site.private / BUNDLE))
        try:
            transport = SubprocessTransport(argv, dict(os.environ))
        except (OSError, subprocess.SubprocessError) as error:
            raise PlatformError(f"the remote helper of node {number} cannot be started: {error}") from error
        helper = HelperClient(transport, number, site.token, site.visitors)
        router = self._held.router
        address = router.join(number, own_namespace(transport.pid, site.clock))
        return NetworkNode(number, site.private / f"node-{number}", helper, address, node_network=router)
