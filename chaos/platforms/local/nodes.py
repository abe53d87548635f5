"""Nodes on this host: several launchers, each started by a remote helper of its own, over plain pipes.

The platform exercises what a job of several nodes needs of the harness, without a cluster; the nodes share this host's
network, processes and clock, and results say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.base.clock import Clock
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.remote.bundle import BUNDLE, bundle, helper_argv, write_bundle
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.transport import SubprocessTransport
from chaos.platforms.local.kind import NODES
from chaos.platforms.node_set import NodeSet
from chaos.platforms.nodes import END_NODES, NodeState, Site

if TYPE_CHECKING:
    from chaos.platforms.network.links import NodeNetwork

_ADDRESS = "127.0.0.1"


class LocalNodesPlatform:
    """Makes nodes of this host."""

    name = NODES.name

    def simulated(self, nodes: int) -> str | None:
        """Return the difference from a cluster: the nodes are one host."""
        return f"{nodes} nodes: launchers on one host, each with a remote helper of its own"

    def open(self, site: Site) -> LocalNodes:
        """Start a remote helper for each node."""
        site.ledger.record(
            UndoStep("nodes", None, END_NODES, {"platform": self.name}, "end the remote helpers of the run's nodes")
        )
        write_bundle(site.private)
        nodes = LocalNodes(site)
        try:
            nodes.ready()
        except BaseException:
            nodes.close()
            raise
        return nodes

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """Do nothing: a remote helper ends with its harness, and the job's processes are this host's own."""
        del arguments, token, clock
        return "remote helpers end with their harness"

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HelperClient | None:
        """Return a new remote helper on this host."""
        del arguments
        transport = SubprocessTransport(helper_argv(sys.executable), dict(os.environ))
        try:
            transport.write(bundle())
        except OSError as error:
            transport.close()
            raise PlatformError(f"no remote helper can be started for node {node}: {error}") from error
        return HelperClient(transport, node, token)


@dataclass
class LocalNode:
    """One node of this host."""

    number: int
    private: Path
    helper: HelperClient
    address: str = _ADDRESS
    known: NodeState = field(default="running", init=False)
    place: Mapping[str, Any] = field(default_factory=dict, init=False)
    node_network: NodeNetwork | None = field(default=None, init=False)

    def state(self) -> NodeState:
        """Return "running": this host runs."""
        return "running"

    def ended(self) -> ExitStatus:
        """Return an unknown status: this host has not ended."""
        return ExitStatus()


class LocalNodes(NodeSet[LocalNode]):
    """The nodes of one run."""

    @property
    def python(self) -> Path:
        """The interpreter of the ranks."""
        return self._site.python

    def ready(self) -> Sequence[LocalNode]:
        """Return all nodes, each with a remote helper that answers."""
        for number in range(self._site.nodes):
            node = self._nodes.get(number)
            if node is None or node.helper.lost is not None:
                self._nodes[number] = self.make(number)
        return self.all()

    def make(self, number: int) -> LocalNode:
        """Return a node with a remote helper."""
        return LocalNode(number, self._site.private / f"node-{number}", self._start(number))

    def _start(self, number: int) -> HelperClient:
        site = self._site
        try:
            transport = SubprocessTransport((str(site.python), "-I", str(site.private / BUNDLE)), dict(os.environ))
        except (OSError, subprocess.SubprocessError) as error:
            raise PlatformError(f"the remote helper of node {number} cannot be started: {error}") from error
        return HelperClient(transport, number, site.token, site.visitors)
