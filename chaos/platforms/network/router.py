"""The network between the nodes of a run on this host: each in a namespace of its own, behind a router in another.

All traffic between two nodes passes the router, so a fault is one rule there: it lets the packets of one direction
vanish, as a broken network does, and neither node is told. With the processes that hold the namespaces everything in
them is gone; of this host's network nothing is used or changed.
"""

from __future__ import annotations

import ipaddress
import json
import zlib
from dataclasses import asdict
from pathlib import Path

from chaos.plain_files import read_plain
from chaos.platforms.base import PlatformError
from chaos.platforms.network.namespace import Namespace
from chaos.platforms.process import ProcessIdentity
from chaos.strict_json import parse

RECORD = "network.json"
"""File of the run's directory that says which process holds the router's namespace."""

_NETWORK = ipaddress.ip_network("10.77.0.0/16")
_BETWEEN_ROUTER_AND_NODE = 4
MOST_NODES = 1 << 14


def address_of(node: int) -> str:
    """The address of a node, the same in every run: nobody outside the run's namespaces sees it."""
    return str(_NETWORK[node * _BETWEEN_ROUTER_AND_NODE + 2])


def preference_of(fault: str) -> int:
    """The preference of a fault's rules, by which they are found and removed again (ip-rule(8))."""
    return 1000 + zlib.crc32(fault.encode()) % 30000


class Router:
    """The router of one run. All methods raise PlatformError."""

    def __init__(self, namespace: Namespace) -> None:
        self._run = namespace

    @classmethod
    def recorded(cls, run_dir: Path) -> Router | None:
        """That of a run, by its record; None where the run has none."""
        path = run_dir / RECORD
        if not path.is_file():
            return None
        match parse(read_plain(path)):
            case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot)}:
                return cls(Namespace(ProcessIdentity(pid, start_time, boot)))
            case _:
                raise PlatformError(f"{path} does not say which process holds the run's network")

    def record(self, run_dir: Path) -> None:
        """Write down which process holds it."""
        holder = {key: value for key, value in asdict(self._run.holder).items() if key != "node"}
        (run_dir / RECORD).write_text(json.dumps(holder), "utf-8")

    @property
    def is_there(self) -> bool:
        """Whether it has not gone with its harness."""
        return self._run.is_there()

    def begin(self) -> None:
        """Let packets pass from one node to another."""
        self._run.do("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")

    def join(self, node: int, namespace: Namespace) -> str:
        """Connect the namespace of a node, and return its address there."""
        if node >= MOST_NODES:
            raise PlatformError(f"a run on this host has at most {MOST_NODES} nodes")
        own, link = address_of(node), _link(node)
        gateway = str(_NETWORK[node * _BETWEEN_ROUTER_AND_NODE + 1])
        if self._run("ip", "link", "show", link).code == 0:  # of a node before this one
            self._run.do("ip", "link", "del", link)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(namespace.holder.pid))
        self._run.do("ip", "link", "add", link, *peer)
        self._run.do("ip", "addr", "add", f"{gateway}/30", "dev", link)
        self._run.do("ip", "link", "set", link, "up")
        namespace.do("ip", "link", "set", "lo", "up")
        namespace.do("ip", "addr", "add", f"{own}/30", "dev", "eth0")
        namespace.do("ip", "link", "set", "eth0", "up")
        namespace.do("ip", "route", "add", "default", "via", gateway)
        return own

    def cut(self, fault: str, source: int, target: int) -> None:
        """Let what ``source`` sends to ``target`` vanish."""
        if not self.is_cut(source, target):
            ends = ("from", f"{address_of(source)}/32", "to", f"{address_of(target)}/32")
            self._run.do("ip", "rule", "add", "pref", str(preference_of(fault)), *ends, "blackhole")

    def is_cut(self, source: int, target: int) -> bool:
        """What the kernel does with a packet from one node to another: whether it lets it vanish."""
        ends = (address_of(target), "from", address_of(source), "iif", _link(source))
        looked = self._run("ip", "route", "get", *ends)
        if looked.code != 0 and "Invalid argument" not in looked.errors:
            raise PlatformError(f"the way from node {source} to node {target} is not known: {looked.errors.strip()}")
        return looked.code != 0

    def mend(self, fault: str) -> int:
        """Remove the rules of a fault; how many they were."""
        found = self._run.do("ip", "rule", "list", "pref", str(preference_of(fault))).splitlines()
        for _ in found:
            self._run.do("ip", "rule", "del", "pref", str(preference_of(fault)))
        return len(found)

    def limit(self, node: int, *discipline: str) -> None:
        """Send to a node as a queueing discipline says (tc(8)): ``tbf rate 1mbit …``, ``netem delay 10ms``."""
        self._run.do("tc", "qdisc", "replace", "dev", _link(node), "root", *discipline)

    def limited(self, node: int) -> dict[str, object] | None:
        """The discipline with which the kernel sends to a node, with its counters; None where there is none of ours."""
        shown = parse(self._run.do("tc", "-s", "-j", "qdisc", "show", "dev", _link(node)))
        for one in shown if isinstance(shown, list) else []:
            if isinstance(one, dict) and one.get("root") and one.get("kind") in ("tbf", "netem"):
                return one
        return None

    def free(self, node: int) -> bool:
        """Send to a node as before. False when nothing was limited."""
        if self.limited(node) is None:
            return False
        self._run.do("tc", "qdisc", "del", "dev", _link(node), "root")
        return True


def _link(node: int) -> str:
    return f"node{node}"
