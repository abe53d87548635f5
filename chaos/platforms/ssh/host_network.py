"""The network between hosts: each host itself drops the packets of a fault, by rules of its packet filter.

Packets from one host to another vanish where they arrive, so that nobody is notified, as with a router between them; or
they wait there, in a device of the fault's own. Rules are about data addresses of the run's hosts only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

from chaos.machine.linux.net.connections import Connection
from chaos.machine.linux.net.echo import Echoes, added
from chaos.machine.linux.net.netfilter import Rule, RuleCounter
from chaos.machine.linux.net.ports import ANY, Ports
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.network_calls import NetworkView
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

T = TypeVar("T")

_BYTES_PER_KBIT = 125


class HasHelper(Protocol):
    """A host of the run."""

    @property
    def address(self) -> str:
        """Its data address."""

    @property
    def helper(self) -> HelperClient:
        """The remote helper on the host."""


class HostNetwork:
    """The network between the hosts of one run, each by its number. All methods raise PlatformError."""

    def __init__(self, hosts: Mapping[int, HasHelper]) -> None:
        self._hosts = hosts

    def address(self, node: int) -> str:
        """Return the data address of a host."""
        return self._hosts[node].address

    def cut(self, fault: str, directions: Iterable[Direction]) -> None:
        """Drop the packets at each receiving host. All hosts begin at once, or as nearly as they can."""
        self.block(fault, [(direction, ANY) for direction in directions])

    def cuts(self, fault: str) -> set[Direction]:
        """Return the directions that a fault's own rules cut, altogether or for some ports."""
        return {direction for direction, counter in self._laid(fault) if _cuts(counter.rule)}

    def block(self, fault: str, flows: Sequence[tuple[Direction, Ports]]) -> None:
        """Drop only TCP packets between these ports."""
        rules: defaultdict[int, list[Rule]] = defaultdict(list)
        for direction, ports in flows:
            rules[direction[1]].append(self._rule(direction, ports))
        self._at_once(rules, lambda node: self._hosts[node].helper.lay(fault, rules[node]))

    def lost(self, fault: str, flows: Sequence[tuple[Direction, Ports]]) -> list[Direction]:
        """Return the directions in which packets have vanished by the fault's own rule, which still exists."""
        vanished = {counter.rule for _, counter in self._laid(fault) if counter.vanished[0]}
        return [direction for direction, ports in flows if self._rule(direction, ports) in vanished]

    def blocked(self, fault: str, port: int, flows: Sequence[tuple[Direction, Ports]], node: int) -> Blocked:
        """Return the effects of the block that the hosts show.

        Packets are sent every way first: by the others to the port, and from the port to the hosts that must receive
        nothing of it. Answers from another port show which other packets pass.
        """
        others = sorted({peer for direction, _ in flows for peer in direction} - {node})
        address, helper = self.address(node), self._hosts[node].helper
        addresses = [self.address(peer) for peer in others]
        count = helper.connections_at(address, port, addresses)
        if deaf := [self.address(target) for (source, target), _ in flows if source == node]:
            helper.send_from(address, port, deaf)

        def hear(other: int) -> tuple[bool, bool]:
            asked, here = self._hosts[other].helper, self.address(other)
            answer = asked.attempt(here, address, port, SILENCE_SECONDS)
            return answer, asked.attempt(here, address, another_port(port), ANSWER_SECONDS)

        heard = dict(zip(others, self._at_once(others, hear), strict=True))
        passing = [
            direction for direction, _ in flows if heard[direction[0] if direction[0] != node else direction[1]][1]
        ]
        attempts, elsewhere = (sum(counts) for counts in zip(*heard.values(), strict=True))
        return Blocked(count, self.lost(fault, flows), passing, (len(others), attempts), (len(others), elsewhere))

    def established(self, node: int, *, of_run: bool) -> list[Connection]:
        """Return the connections of a host's data address with the others' data addresses."""
        others = [host.address for number, host in self._hosts.items() if number != node]
        return self._hosts[node].helper.connected(self.address(node), others, of_run=of_run)

    def reset(self, node: int, connection: Connection) -> bool:
        """Let the kernel of a host reset a connection, which one of the run's processes there has."""
        return self._hosts[node].helper.reset(connection)

    def cut_effects(
        self, fault: str, directions: Sequence[Direction], here: Sequence[int], there: Sequence[int]
    ) -> CutEffects:
        """Return the effects of the cut that each host shows.

        All hosts send echoes at once, so that packets go every way; a rule that exists and has dropped nothing yet does
        not count.
        """
        opposite = {**dict.fromkeys(here, there), **dict.fromkeys(there, here)}

        def look(node: int) -> NetworkView:
            addresses = [self.address(peer) for peer in opposite[node]]
            return self._hosts[node].helper.look(fault, addresses, count=ECHOES, wait=ECHO_SECONDS)

        counters = dict(zip(opposite, self._at_once(opposite, look), strict=True))
        lost = []
        for source, target in directions:
            rule = self._rule((source, target))
            vanished = any(counter.rule == rule and counter.vanished[0] for counter in counters[target].run_rules)
            if vanished and any(counter.rule == rule for counter in counters[target].fault_rules):
                lost.append((source, target))
        views = [counters[node] for node in here]
        return CutEffects(sum(view.connections for view in views), lost, added(view.echoes for view in views))

    def impair(self, fault: str, node: int, what: Impairment) -> None:
        """Drop a random share of the packets from the others, or delay all of them."""
        if what.delay or what.jitter:
            self._lay_on(fault, node, partial(Rule, delay=what.delay, jitter=what.jitter))
        if what.loss:
            self._lay_on(fault, node, partial(Rule, loss=what.loss))

    def impaired(self, fault: str, node: int) -> dict[str, Any] | None:
        """Return how many packets have passed or waited, and how many have not; None without an impairment.

        The packets are those that have waited and gone on, or have passed the rules of loss.
        """
        laid = self._hosts[node].helper.list_rules(fault)
        if waits := [counter for counter in laid if counter.rule.delay is not None]:
            return {"by": "netem", "passed": waits[0].passed, "came": sum(counter.came[0] for counter in waits)}
        loss_counters = [counter for counter in laid if counter.rule.loss is not None]
        came, vanished = (
            sum(getattr(counter, which)[0] for counter in loss_counters) for which in ("came", "vanished")
        )
        return {"by": "packet filter", "passed": came - vanished, "vanished": vanished} if loss_counters else None

    def slow(self, fault: str, node: int, kbit: int) -> None:
        """Drop packets from each of the others beyond a rate; the sender sends them again, later."""
        self._lay_on(fault, node, partial(Rule, rate=kbit * _BYTES_PER_KBIT))

    def slowed(self, fault: str, node: int) -> dict[str, int] | None:
        """Return the rate, the bytes that have passed and the packets beyond the rate; None without one."""
        rate_counters = [
            rule_counter
            for rule_counter in self._hosts[node].helper.list_rules(fault)
            if rule_counter.rule.rate is not None
        ]
        if not rate_counters or rate_counters[0].rule.rate is None:
            return None
        passed = sum(counter.came[1] - counter.vanished[1] for counter in rate_counters)
        over = sum(counter.vanished[0] for counter in rate_counters)
        return {"kbit": rate_counters[0].rule.rate // _BYTES_PER_KBIT, "bytes": passed, "overlimits": over}

    def echo(self, node: int, others: Sequence[int], *, count: int, interval: float = 0.0, wait: float) -> Echoes:
        """Return the results of echo requests from a host to each of the others."""
        addresses = [self.address(peer) for peer in others]
        return self._hosts[node].helper.echo(addresses, count=count, interval=interval, wait=wait)

    def left(self, node: int) -> list[str]:
        """Return the rules of the run that remain on a host, in words."""
        return left_on(self._hosts[node].helper)

    def _lay_on(self, fault: str, node: int, rule: Callable[..., Rule]) -> None:
        others = [candidate for candidate in self._hosts if candidate != node]
        self._hosts[node].helper.lay(fault, [rule(self.address(peer), self.address(node)) for peer in others])

    def _laid(self, fault: str) -> list[tuple[Direction, RuleCounter]]:
        numbers = {host.address: number for number, host in self._hosts.items()}
        laid = self._at_once(self._hosts, lambda node: self._hosts[node].helper.list_rules(fault))
        return [
            ((numbers[counter.rule.source], numbers[counter.rule.target]), counter) for each in laid for counter in each
        ]

    def _rule(self, direction: Direction, ports: Ports = ANY) -> Rule:
        return Rule(self.address(direction[0]), self.address(direction[1]), ports=ports)

    @staticmethod
    def _at_once(nodes: Collection[int], ask: Callable[[int], T]) -> list[T]:
        with ThreadPoolExecutor(max(1, len(nodes))) as pool:
            return list(pool.map(ask, nodes))


def left_on(helper: HelperClient) -> list[str]:
    """Return the rules of the run that remain where a remote helper is, in words."""
    devices = [f"a device in which packets were to wait ({device})" for device in helper.devices()]
    return [*map(_described, helper.list_rules()), *devices]


def _cuts(rule: Rule) -> bool:
    return rule.loss is None and rule.rate is None and rule.delay is None


def _described(counter: RuleCounter) -> str:
    """Return a remaining rule, in words."""
    rule, ports = counter.rule, counter.rule.ports
    if rule.delay is not None:
        what = "holds up"
    elif rule.loss is not None:
        what = "loses some of"
    else:
        what = "cuts" if rule.rate is None else "limits"
    source = f"port {ports.source} of {rule.source}" if ports.source else rule.source
    target = f"port {ports.target} of {rule.target}" if ports.target else rule.target
    return f"a rule that {what} what comes from {source} for {target}"
