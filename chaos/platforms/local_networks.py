"""Nodes of this host with a network of their own: each hand, and all that it starts, in a namespace behind a router."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from chaos.history.ledger import UndoStep
from chaos.platforms.base import PlatformError
from chaos.platforms.hand.bundle import BUNDLE, write_bundle
from chaos.platforms.hand.client import HandClient
from chaos.platforms.hand.transport import SubprocessTransport
from chaos.platforms.local_nodes import LocalNode, LocalNodes, LocalNodesPlatform
from chaos.platforms.network.namespace import Namespace
from chaos.platforms.network.router import RECORD, Router
from chaos.platforms.nodes import END_NODES, Site
from chaos.platforms.process import identify
from chaos.platforms.procfs import PROC

_HOLD = ("unshare", "--net", "--", "cat")
"""Who holds a namespace: it ends when its input does, which is when the harness has ended, however that came."""

_START_SECONDS = 10.0


class LocalNetworksPlatform(LocalNodesPlatform):
    """Makes nodes of this host, each in a network namespace of its own."""

    name = "local-networks"
    carries = LocalNodesPlatform.carries | {"network"}
    needs = ("network-namespaces",)

    def simulated(self, nodes: int) -> str | None:
        """They are one host, and their network is inside its kernel."""
        return f"{nodes} nodes: network namespaces on one host, behind a router of the run's own"

    def open(self, site: Site) -> LocalNetworks:
        """Make the router's namespace, then a hand in one of its own for each node."""
        site.ledger.record(
            UndoStep("nodes", None, END_NODES, {"platform": self.name}, "end the hands and the network of the run")
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
    """One of them; faults of the network ask its router."""

    router: Router | None = None


class LocalNetworks(LocalNodes):
    """The nodes of one run, and the router between them."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._holder: subprocess.Popen[bytes] | None = None
        self._router: Router | None = None

    def begin(self) -> None:
        """Make the router."""
        try:
            self._holder = subprocess.Popen(_HOLD, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        except OSError as error:
            raise PlatformError(f"no network namespace can be made: {error}") from error
        self._router = Router(self._own_namespace(self._holder.pid))
        self._router.record(self._site.run_dir)
        self._router.begin()

    def close(self) -> None:
        """Let go of the hands, then of the router."""
        super().close()
        if self._holder is not None:
            assert self._holder.stdin is not None
            self._holder.stdin.close()
            self._holder.wait()
            self._holder = None
            (self._site.run_dir / RECORD).unlink(missing_ok=True)

    def make(self, number: int) -> LocalNode:
        """A node with a hand in a namespace of its own, connected to the router."""
        assert self._router is not None
        site = self._site
        argv = ("unshare", "--net", "--", str(site.python), "-I", str(site.private / BUNDLE))
        try:
            transport = SubprocessTransport(argv, dict(os.environ))
        except (OSError, subprocess.SubprocessError) as error:
            raise PlatformError(f"the hand of node {number} cannot be started: {error}") from error
        hand = HandClient(transport, number, site.token, site.visitors)
        address = self._router.join(number, self._own_namespace(transport.pid))
        return NetworkNode(number, site.private / f"node-{number}", hand, address, router=self._router)

    def _own_namespace(self, pid: int) -> Namespace:
        """That of a child, once it has left this process's own. Raises PlatformError."""
        deadline = self._site.clock.mono() + int(_START_SECONDS * 1e9)
        while self._site.clock.mono() < deadline:
            try:
                if os.readlink(PROC / str(pid) / "ns" / "net") != os.readlink(PROC / "self" / "ns" / "net"):  # noqa: PTH115
                    return Namespace(identify(pid))
            except OSError as error:
                raise PlatformError(f"process {pid} has ended before it had a network of its own") from error
            self._site.clock.sleep(0.01)
        raise PlatformError(f"process {pid} has no network of its own after {_START_SECONDS:g} s")
