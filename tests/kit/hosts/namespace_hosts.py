"""Two hosts that reach each other by themselves: helpers in network namespaces of their own, joined by a cable."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.remote.bundle import bundle
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.transport import SubprocessTransport
from chaos.platforms.network.holder import own_namespace
from chaos.platforms.nodes import NodeState
from chaos.platforms.ssh.host_network import HostNetwork

NETWORK = "10.214.3"
HARNESS = f"{NETWORK}.9"
"""From where the remote helpers are told that their harness comes."""


@dataclass
class HostInNamespace:
    """One of them, as a node of a job."""

    number: int
    address: str
    private: Path
    namespace: Namespace
    helper: HelperClient
    node_network: HostNetwork | None = None
    place: Mapping[str, Any] = field(default_factory=lambda: {"hosts": [0, 1]})
    known: NodeState = "running"

    def state(self) -> NodeState:
        return "running"

    def ended(self) -> ExitStatus:
        return ExitStatus()

    def rules_left(self) -> list[str]:
        assert self.node_network is not None
        return self.node_network.left(self.number)

    def another_helper(self, run: str) -> HelperClient:
        """A second remote helper there, as the next harness starts one."""
        inside = ("nsenter", f"--net=/proc/{self.namespace.holder.pid}/ns/net", "--")
        return _helper(self.private.parent, self.number, run, inside)


@contextmanager
def two_hosts(run: str, harness: str = HARNESS, before: tuple[str, ...] = ()) -> Iterator[list[HostInNamespace]]:
    """The hosts of a run whose helpers are reached from ``harness``. ``before`` precedes the command of each helper."""
    with tempfile.TemporaryDirectory(prefix="hosts-") as place, ExitStack() as held:
        (Path(place) / "remote_helper.pyz").write_bytes(bundle())
        hosts = []
        for number in (0, 1):
            holder = subprocess.Popen(("unshare", "--net", "--", "cat"), stdin=subprocess.PIPE)
            held.callback(holder.communicate)
            namespace = own_namespace(holder.pid, SYSTEM_CLOCK)
            inside = ("nsenter", f"--net=/proc/{holder.pid}/ns/net", "--", *before)
            helper = _helper(Path(place), number, run, inside, harness)
            held.callback(helper.close)
            private = Path(place) / f"node-{number}"
            hosts.append(HostInNamespace(number, f"{NETWORK}.{number + 1}", private, namespace, helper))
        node_network = HostNetwork({host.number: host for host in hosts})
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(hosts[1].namespace.holder.pid))
        hosts[0].namespace.do("ip", "link", "add", "eth0", *peer)
        for host in hosts:
            host.node_network = node_network
            host.namespace.do("ip", "link", "set", "lo", "up")
            host.namespace.do("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
            host.namespace.do("ip", "link", "set", "eth0", "up")
        yield hosts


def _helper(place: Path, number: int, run: str, inside: tuple[str, ...], harness: str = HARNESS) -> HelperClient:
    argv = (*inside, sys.executable, "-I", str(place / "remote_helper.pyz"))
    own = {"PATH": os.environ["PATH"], "SSH_CONNECTION": f"{harness} 40000 {NETWORK}.{number + 1} 22"}
    return HelperClient(SubprocessTransport(argv, own), number, run)
