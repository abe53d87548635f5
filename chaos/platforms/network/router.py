"""The network between the nodes of a run on this host: each in a namespace of its own, behind a router in another.

All traffic between two nodes passes the router, so a fault is one rule there: it drops the packets of one direction, as
a broken network does, and neither node is notified. When the processes that hold the namespaces end, everything in them
is gone; this host's own network is neither used nor changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from chaos.base.plain_files import read_plain
from chaos.base.strict_json import parse
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.connected import connections
from chaos.machine.linux.net.connections import Connection, established, reset
from chaos.machine.linux.net.echo import Echoes, added, ask
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.net.port_probe import answering_ends
from chaos.machine.linux.net.ports import ANY, Ports
from chaos.machine.linux.net.rules import Rule, Rules
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.linux.procfs import environment
from chaos.platforms.network.addressing import (
    MOST_NODES,
    address_of,
    gateway_of,
    handle_of,
    link_of,
    node_at,
    preference_of,
    protocol_of,
)
from chaos.platforms.network.impairment import Impairment
from chaos.platforms.network.links import (
    ANSWER_SECONDS,
    ECHO_SECONDS,
    ECHOES,
    SILENCE_SECONDS,
    Blocked,
    CutEffects,
    Direction,
    another_port,
)
from chaos.platforms.network.relays import Relays, netem

RECORD = "network.json"
"""File of the run's directory that names the process holding the router's namespace."""

HOLDS_FOR = "CHAOS_NETWORK_OF"
"""Variable of the holding process: the run's directory. The record alone could lead to any network."""


class Router:
    """The router of one run. All methods raise PlatformError."""

    def __init__(self, namespace: Namespace) -> None:
        self._run = namespace
        self._rules = Rules(namespace)
        self.relays = Relays(namespace)
        self._joined: dict[int, Namespace] = {}

    @classmethod
    def recorded(cls, run_dir: Path) -> Router | None:
        """Return the router of a run, by its record; None where the run has none."""
        path = run_dir / RECORD
        if not path.is_file():
            return None
        match parse(read_plain(path)):
            case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot)}:
                _refuse_another(pid, run_dir)
                return cls(Namespace(ProcessIdentity(pid, start_time, boot)))
            case _:
                raise PlatformError(f"{path} does not say which process holds the run's network")

    def record(self, run_dir: Path) -> None:
        """Record the process that holds it."""
        holder = {key: value for key, value in asdict(self._run.holder).items() if key != "node"}
        (run_dir / RECORD).write_text(json.dumps(holder), "utf-8")

    @property
    def is_there(self) -> bool:
        """Whether it has not gone with its harness."""
        return self._run.is_there()

    def begin(self) -> None:
        """Pass packets from one node to another, also packets that come from a relay."""
        settings = ("ip_forward=1", "conf.all.rp_filter=0", "conf.default.rp_filter=0")
        self._run.do("sysctl", "-q", "-w", *(f"net.ipv4.{setting}" for setting in settings))

    def join(self, node: int, namespace: Namespace) -> str:
        """Connect the namespace of a node, and return its address there."""
        if node >= MOST_NODES:
            raise PlatformError(f"a run on this host has at most {MOST_NODES} nodes")
        address, link = address_of(node), link_of(node)
        self._joined[node] = namespace
        gateway = gateway_of(node)
        if self.is_joined(node):  # the previous namespace of this node
            self._run.do("ip", "link", "del", link)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", str(namespace.holder.pid))
        self._run.do("ip", "link", "add", link, *peer)
        self._run.do("ip", "addr", "add", f"{gateway}/30", "dev", link)
        self._run.do("ip", "link", "set", link, "up")
        namespace.do("ip", "link", "set", "lo", "up")
        namespace.do("ip", "addr", "add", f"{address}/30", "dev", "eth0")
        namespace.do("ip", "link", "set", "eth0", "up")
        namespace.do("ip", "route", "add", "default", "via", gateway)
        return address

    def is_joined(self, node: int) -> bool:
        """Return whether a living namespace is connected as this node."""
        return self._run("ip", "link", "show", link_of(node)).code == 0

    def is_connected(self, node: int) -> bool:
        """Return whether its link is up."""
        listed = parse(self._run.do("ip", "-j", "link", "show", link_of(node)))
        return isinstance(listed, list) and any(isinstance(link, dict) and "UP" in link["flags"] for link in listed)

    def disconnect(self, node: int) -> None:
        """Disconnect a node from the network."""
        self._run.do("ip", "link", "set", link_of(node), "down")

    def connect(self, node: int) -> None:
        """Connect it to the network again."""
        self._run.do("ip", "link", "set", link_of(node), "up")

    def cut(self, fault: str, directions: Iterable[Direction], ports: Ports = ANY) -> None:
        """Drop all packets in these directions, each from a node to another, by rules of this fault's own.

        With ``ports`` only TCP between these ports is dropped, and everything else passes.
        """
        self._rules.add([_rule(fault, source, target, ports) for source, target in directions])

    def cuts(self, fault: str, ports: Ports | None = None) -> set[Direction]:
        """Return the directions that a fault's own rules cut; with ``ports`` those cut for exactly these ports."""
        rules = (rule for rule in self._own_rules(fault) if ports is None or rule.ports == ports)
        return {(node_at(rule.source), node_at(rule.target)) for rule in rules}

    def is_cut(self, source: int, target: int, ports: Ports = ANY) -> bool:
        """Return whether the kernel drops a packet from one node to another, for any fault."""
        return not self._rules.lets_through(address_of(source), address_of(target), link_of(source), ports)

    def mend(self, fault: str) -> int:
        """Remove the rules of a fault, and no others; return their number."""
        rules = self._own_rules(fault)
        self._rules.remove(rules)
        return len(rules)

    def limit(self, fault: str, node: int, *discipline: str) -> None:
        """Send to a node by a queueing discipline (tc(8)): ``tbf rate 1mbit …``, ``netem delay 10ms``.

        Raises PlatformError where another fault has one there: a node has one at a time.
        """
        there = self._discipline(node)
        if there is not None and there.get("handle") != handle_of(fault):
            raise PlatformError(f"what is sent to node {node} is limited by another fault already")
        self._run.do("tc", "qdisc", "replace", "dev", link_of(node), "root", "handle", handle_of(fault), *discipline)

    def limited(self, fault: str, node: int) -> dict[str, object] | None:
        """Return this fault's discipline for packets to a node, with its counters; None without one.

        A node whose namespace has ended has none: its link has gone with it.
        """
        there = self._discipline(node) if self.is_joined(node) else None
        return there if there is not None and there.get("handle") == handle_of(fault) else None

    def slow(self, fault: str, node: int, kbit: int) -> None:
        """Send to a node at a rate (tc-tbf(8)); a second call for the same fault changes nothing."""
        if self.limited(fault, node) is None:
            self.limit(fault, node, "tbf", "rate", f"{kbit}kbit", "burst", "16kb", "latency", "1s")

    def slowed(self, fault: str, node: int) -> dict[str, int] | None:
        """Return the rate by which the kernel sends to a node for this fault, and its counters; None without one."""
        match self.limited(fault, node):
            case {"options": {"rate": int(rate)}, "bytes": int(sent), "overlimits": int(over)}:
                return {"kbit": rate * 8 // 1000, "bytes": sent, "overlimits": over}
            case _:
                return None

    def free(self, fault: str, node: int) -> bool:
        """Send to a node without this fault's discipline or relay. Returns False when it has none."""
        if self.relays.end(fault, node):
            return True
        if self.limited(fault, node) is None:
            return False
        self._run.do("tc", "qdisc", "del", "dev", link_of(node), "root")
        return True

    def left(self, node: int) -> list[str]:
        """Return the rules of faults that remain in the directions of a node, in words."""
        rules = [rule for rule in self._rules.listed() if node_at(rule.source) == node]
        leftovers = [f"a rule that cuts node {node} from {_end(rule)}" for rule in rules]
        if not self.is_joined(node):
            return leftovers
        if self.relays.is_there(node):
            leftovers.append(f"a relay on the way to node {node}")
        if (there := self._discipline(node)) is not None:
            leftovers.append(f"a limit ({there.get('kind')}) on what is sent to node {node}")
        if not self.is_connected(node):
            leftovers.append(f"the link of node {node} is down")
        return leftovers

    def impair(self, fault: str, node: int, what: Impairment) -> None:
        """Delay or lose packets to a node: by netem where the kernel has it, else by a relay."""
        if self._has_netem():
            self.limit(fault, node, *netem(what))
            return
        links = parse(self._run.do("ip", "-j", "link", "show", "type", "veth"))
        names = [str(link["ifname"]) for link in links if isinstance(link, dict)] if isinstance(links, list) else []
        sources = [name for name in names if name != link_of(node)]
        self.relays.start(fault, node, address_of(node), sources, what)

    def impaired(self, fault: str, node: int) -> dict[str, object] | None:
        """Return the fault's impairment of a node's link: ``by`` what, and the packets ``passed``; None without one."""
        if (shown := self.relays.shown(fault, node)) is not None:
            return {"by": "relay", **shown}
        there = self.limited(fault, node)
        return None if there is None or there["kind"] != "netem" else {"by": "netem", "passed": there["packets"]}

    def cut_effects(
        self, fault: str, directions: Sequence[Direction], here: Sequence[int], there: Sequence[int]
    ) -> CutEffects:
        """Return the connections of the nodes' namespaces, the kernel's treatment of packets, and the echoes."""
        addresses = {address_of(node) for node in there}
        count = sum(connections(self.namespace(node).holder.pid, addresses) for node in here)
        cuts = self.cuts(fault)
        lost = [direction for direction in directions if direction in cuts and self.is_cut(*direction)]
        echoes = [self.echo(node, there, count=ECHOES, wait=ECHO_SECONDS) for node in here]
        return CutEffects(count, lost, added(echoes))

    def block(self, fault: str, flows: Sequence[tuple[Direction, Ports]]) -> None:
        """Drop TCP packets between these ports in these directions, by rules of the fault's own."""
        self._rules.add([_rule(fault, *direction, ports) for direction, ports in flows])

    def lost(self, fault: str, flows: Sequence[tuple[Direction, Ports]]) -> list[Direction]:
        """Return the directions in which the kernel has this fault's rule and drops a matching packet."""
        rules = self._own_rules(fault)
        return [
            direction
            for direction, ports in flows
            if _rule(fault, *direction, ports) in rules and self.is_cut(*direction, ports)
        ]

    def blocked(self, fault: str, port: int, flows: Sequence[tuple[Direction, Ports]], node: int) -> Blocked:
        """Return the connections of the node's namespace, the kernel's treatment of packets, and the answers."""
        others = sorted({end for direction, _ in flows for end in direction} - {node})
        count = connections(self.namespace(node).holder.pid, {address_of(peer) for peer in others}, port)
        lost = self.lost(fault, flows)
        passing = [direction for direction, _ in flows if not self.is_cut(*direction)]
        heard = [
            sum(len(answering_ends(self.namespace(peer), [(address_of(node), at)], wait=seconds)) for peer in others)
            for at, seconds in ((port, SILENCE_SECONDS), (another_port(port), ANSWER_SECONDS))
        ]
        return Blocked(count, lost, passing, (len(others), heard[0]), (len(others), heard[1]))

    def established(self, node: int, *, of_run: bool) -> list[Connection]:
        """Return all connections of the node's namespace with others: it has only processes of the run."""
        del of_run
        return established(self.namespace(node))

    def reset(self, node: int, connection: Connection) -> bool:
        """Let the kernel reset a connection of the node's namespace."""
        return reset(self.namespace(node), connection)

    def address(self, node: int) -> str:
        """Return the address of a node on the run's network, in numbers."""
        return address_of(node)

    def echo(self, node: int, others: Sequence[int], *, count: int, interval: float = 0.0, wait: float) -> Echoes:
        """Return the results of echo requests from a node to each of the others."""
        return ask(
            self.namespace(node), [address_of(peer) for peer in others], count=count, interval=interval, wait=wait
        )

    def namespace(self, node: int) -> Namespace:
        """Return the namespace of a node."""
        if node not in self._joined:
            raise PlatformError(f"node {node} has no network of the run's own")
        return self._joined[node]

    def _has_netem(self) -> bool:
        try_out = ("tc", "qdisc", "replace", "dev", "lo", "root", "netem", "delay", "1ms")
        if self._run(*try_out).code != 0:
            return False
        self._run.do("tc", "qdisc", "del", "dev", "lo", "root")
        return True

    def _own_rules(self, fault: str) -> list[Rule]:
        mark = preference_of(fault), protocol_of(fault)
        return [rule for rule in self._rules.listed() if (rule.preference, rule.protocol) == mark]

    def _discipline(self, node: int) -> dict[str, object] | None:
        shown = parse(self._run.do("tc", "-s", "-j", "qdisc", "show", "dev", link_of(node)))
        for row in shown if isinstance(shown, list) else []:
            if isinstance(row, dict) and row.get("root") and row.get("kind") in ("tbf", "netem"):
                return row
        return None


def _rule(fault: str, source: int, target: int, ports: Ports) -> Rule:
    return Rule(address_of(source), address_of(target), preference_of(fault), protocol_of(fault), ports)


def _end(rule: Rule) -> str:
    """Return what a rule cuts its source from, in words."""
    node = f"node {node_at(rule.target)}"
    if rule.ports.source:
        return f"{node} where it sends from port {rule.ports.source}"
    return f"port {rule.ports.target} of {node}" if rule.ports.target else node


def _refuse_another(pid: int, run_dir: Path) -> None:
    """Raise PlatformError for a living process that holds the network of another run, or none."""
    variables = environment(pid)
    if variables is not None and variables.get(HOLDS_FOR) != str(run_dir.resolve()):
        raise PlatformError(f"process {pid} does not hold the network of {run_dir}; nothing was changed")
