"""Nodes that are hands on this host: several launchers, each in the care of a hand of its own, over plain pipes.

It tries out what a job of several nodes needs of the harness, without a cluster; the nodes share this host's network,
processes and clock, and say so.
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
from chaos.machine.hand.bundle import BUNDLE, bundle, hand_argv, write_bundle
from chaos.machine.hand.client import HandClient
from chaos.machine.hand.transport import SubprocessTransport
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.platforms.held import HeldNodes
from chaos.platforms.local.kind import NODES
from chaos.platforms.nodes import END_NODES, NodeState, Site

if TYPE_CHECKING:
    from chaos.platforms.network.links import Between

_ADDRESS = "127.0.0.1"


class LocalNodesPlatform:
    """Makes nodes of this host."""

    name = NODES.name

    def simulated(self, nodes: int) -> str | None:
        """They are one host."""
        return f"{nodes} nodes: launchers on one host, each with a hand of its own"

    def open(self, site: Site) -> LocalNodes:
        """Start a hand for each node."""
        site.ledger.record(
            UndoStep("nodes", None, END_NODES, {"platform": self.name}, "end the hands of the run's nodes")
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
        """Nothing: a hand ends with its harness, and the job's processes are this host's own."""
        del arguments, token, clock
        return "hands end with their harness"

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HandClient | None:
        """A new hand on this host."""
        del arguments
        transport = SubprocessTransport(hand_argv(sys.executable), dict(os.environ))
        try:
            transport.write(bundle())
        except OSError as error:
            transport.close()
            raise PlatformError(f"no hand can be started for node {node}: {error}") from error
        return HandClient(transport, node, token)


@dataclass
class LocalNode:
    """One of them."""

    number: int
    private: Path
    hand: HandClient
    address: str = _ADDRESS
    known: NodeState = field(default="running", init=False)
    place: Mapping[str, Any] = field(default_factory=dict, init=False)
    between: Between | None = field(default=None, init=False)

    def state(self) -> NodeState:
        """This host runs."""
        return "running"

    def ended(self) -> ExitStatus:
        """It has not."""
        return ExitStatus()


class LocalNodes(HeldNodes[LocalNode]):
    """The nodes of one run."""

    @property
    def python(self) -> Path:
        """The interpreter of the ranks."""
        return self._site.python

    def ready(self) -> Sequence[LocalNode]:
        """All nodes, each with a hand that answers."""
        for number in range(self._site.nodes):
            node = self._nodes.get(number)
            if node is None or node.hand.lost is not None:
                self._nodes[number] = self.make(number)
        return self.all()

    def make(self, number: int) -> LocalNode:
        """A node with a hand."""
        return LocalNode(number, self._site.private / f"node-{number}", self._start(number))

    def _start(self, number: int) -> HandClient:
        site = self._site
        try:
            transport = SubprocessTransport((str(site.python), "-I", str(site.private / BUNDLE)), dict(os.environ))
        except (OSError, subprocess.SubprocessError) as error:
            raise PlatformError(f"the hand of node {number} cannot be started: {error}") from error
        return HandClient(transport, number, site.token, site.visitors)
