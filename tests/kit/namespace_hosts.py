"""Two hosts that reach each other by themselves: hands in network namespaces of their own, joined by a cable."""

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
from chaos.machine.hand.bundle import bundle
from chaos.machine.hand.client import HandClient
from chaos.machine.hand.transport import SubprocessTransport
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.net.namespace import Namespace
from chaos.platforms.network.holder import own_namespace
from chaos.platforms.nodes import NodeState
from chaos.platforms.ssh.between import BetweenHosts

NETWORK = "10.214.3"
HARNESS = f"{NETWORK}.9"
"""From where the hands are told that their harness comes."""


@dataclass
class HostInNamespace:
    """One of them, as a node of a job."""

    number: int
    address: str
    private: Path
    namespace: Namespace
    hand: HandClient
    between: BetweenHosts | None = None
    place: Mapping[str, Any] = field(default_factory=lambda: {"hosts": [0, 1]})
    known: NodeState = "running"

    def state(self) -> NodeState:
        return "running"

    def ended(self) -> ExitStatus:
        return ExitStatus()

    def rules_left(self) -> list[str]:
        assert self.between is not None
        return self.between.left(self.number)

    def another_hand(self, run: str) -> HandClient:
        """A second hand there, as the next harness starts one."""
        inside = ("nsenter", f"--net=/proc/{self.namespace.holder.pid}/ns/net", "--")
        return _hand(self.private.parent, self.number, run, inside)


@contextmanager
def two_hosts(run: str, harness: str = HARNESS, before: tuple[str, ...] = ()) -> Iterator[list[HostInNamespace]]:
    """The hosts of a run whose hands are reached from ``harness``. ``before`` goes before the command of each hand."""
    with tempfile.TemporaryDirectory(prefix="hosts-") as place, ExitStack() as held:
        (Path(place) / "hand.pyz").write_bytes(bundle())
        hosts = []
        for number in (0, 1):
            holder = subprocess.Popen(("unshare", "--net", "--", "cat"), stdin=subprocess.PIPE)
            held.callback(holder.communicate)
            namespace = own_namespace(holder.pid, SYSTEM_CLOCK)
            inside = ("nsenter", f"--net=/proc/{holder.pid}/ns/net", "--", *before)
            hand = _hand(Path(place), number, run, inside, harness)
            held.callback(hand.close)
            private = Path(place) / f"node-{number}"
            hosts.append(HostInNamespace(number, f"{NETWORK}.{number + 1}", private, namespace, hand))
        between = BetweenHosts({host.number: host for host in hosts})
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(hosts[1].namespace.holder.pid))
        hosts[0].namespace.do("ip", "link", "add", "eth0", *peer)
        for host in hosts:
            host.between = between
            host.namespace.do("ip", "link", "set", "lo", "up")
            host.namespace.do("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
            host.namespace.do("ip", "link", "set", "eth0", "up")
        yield hosts


def _hand(place: Path, number: int, run: str, inside: tuple[str, ...], harness: str = HARNESS) -> HandClient:
    argv = (*inside, sys.executable, "-I", str(place / "hand.pyz"))
    own = {"PATH": os.environ["PATH"], "SSH_CONNECTION": f"{harness} 40000 {NETWORK}.{number + 1} 22"}
    return HandClient(SubprocessTransport(argv, own), number, run)
