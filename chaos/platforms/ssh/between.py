"""The network between hosts: each host itself drops what it is not to hear, by rules of its packet filter.

What goes from one host to another vanishes where it arrives, so that nobody is told, as by a router between them. Rules
are about data addresses of the run's hosts only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from chaos.platforms.base import PlatformError
from chaos.platforms.hand.client import HandClient
from chaos.platforms.hand.netfilter import Counted, Rule
from chaos.platforms.hand.network_calls import Looked
from chaos.platforms.network.between import ECHO_SECONDS, ECHOES, Parted, Way
from chaos.platforms.network.echo import Echoes, added
from chaos.platforms.network.impairment import Impairment

_BYTES_PER_KBIT = 125


class HasHand(Protocol):
    """A host of the run."""

    @property
    def address(self) -> str:
        """Its data address."""

    @property
    def hand(self) -> HandClient:
        """The hand there."""


class BetweenHosts:
    """That of the hosts of one run, each by its number. All methods raise PlatformError."""

    def __init__(self, hosts: Mapping[int, HasHand]) -> None:
        self._hosts = hosts

    def cut(self, fault: str, ways: Iterable[Way]) -> None:
        """Let each host that something is sent to drop it. All of them at once, or as nearly as they can."""
        rules: defaultdict[int, list[Rule]] = defaultdict(list)
        for source, target in ways:
            rules[target].append(Rule(self._address(source), self._address(target)))
        with ThreadPoolExecutor(max(1, len(rules))) as pool:
            list(pool.map(lambda node: self._hosts[node].hand.lay(fault, rules[node]), rules))

    def cuts(self, fault: str) -> set[Way]:
        """The ways that a fault's own rules cut."""
        return {way for way, one in self._laid(fault) if one.rule.loss is None and one.rule.rate is None}

    def parted(self, fault: str, ways: Sequence[Way], here: Sequence[int], there: Sequence[int]) -> Parted:
        """What each host shows. All send echoes at once, so that packets go every way; a rule that is there and by
        which none has vanished yet does not count.
        """
        opposite = {**dict.fromkeys(here, there), **dict.fromkeys(there, here)}

        def look(node: int) -> Looked:
            addresses = [self._address(one) for one in opposite[node]]
            return self._hosts[node].hand.look(fault, addresses, count=ECHOES, wait=ECHO_SECONDS)

        with ThreadPoolExecutor(len(opposite)) as pool:
            seen = dict(zip(opposite, pool.map(look, opposite), strict=True))
        lost = []
        for source, target in ways:
            rule = Rule(self._address(source), self._address(target))
            vanished = any(one.rule == rule and one.vanished[0] for one in seen[target].all)
            if vanished and any(one.rule == rule for one in seen[target].own):
                lost.append((source, target))
        own = [seen[node] for node in here]
        return Parted(sum(one.connections for one in own), lost, added(one.echoes for one in own))

    def impair(self, fault: str, node: int, what: Impairment) -> None:
        """Let a part of what comes from the others vanish by chance. Raises PlatformError where it is to wait."""
        if what.delay or what.jitter:
            raise PlatformError(NO_DELAY)
        self._lay_on(fault, node, partial(Rule, loss=what.loss))

    def impaired(self, fault: str, node: int) -> dict[str, Any] | None:
        """How many packets have passed the rules of loss, and how many have not; None without one."""
        found = [one for one in self._hosts[node].hand.laid(fault) if one.rule.loss is not None]
        came, vanished = (sum(getattr(one, which)[0] for one in found) for which in ("came", "vanished"))
        return {"by": "packet filter", "passed": came - vanished, "vanished": vanished} if found else None

    def slow(self, fault: str, node: int, kbit: int) -> None:
        """Let what comes from each of the others beyond a rate vanish; the sender of it sends it again, later."""
        self._lay_on(fault, node, partial(Rule, rate=kbit * _BYTES_PER_KBIT))

    def slowed(self, fault: str, node: int) -> dict[str, int] | None:
        """The rate, the bytes that have passed and the packets that were beyond it; None without one."""
        found = [one for one in self._hosts[node].hand.laid(fault) if one.rule.rate is not None]
        if not found or found[0].rule.rate is None:
            return None
        passed = sum(one.came[1] - one.vanished[1] for one in found)
        over = sum(one.vanished[0] for one in found)
        return {"kbit": found[0].rule.rate // _BYTES_PER_KBIT, "bytes": passed, "overlimits": over}

    def echo(self, node: int, others: Sequence[int], *, count: int, interval: float = 0.0, wait: float) -> Echoes:
        """What comes of echo requests from a host to each of the others."""
        addresses = [self._address(one) for one in others]
        return self._hosts[node].hand.echo(addresses, count=count, interval=interval, wait=wait)

    def left(self, node: int) -> list[str]:
        """What of the run's rules is still there on a host, in words."""
        return [described(one) for one in self._hosts[node].hand.laid()]

    def _lay_on(self, fault: str, node: int, rule: Any) -> None:
        own = self._address(node)
        self._hosts[node].hand.lay(
            fault, [rule(one.address, own) for one in self._hosts.values() if one.address != own]
        )

    def _laid(self, fault: str) -> list[tuple[Way, Counted]]:
        numbers = {host.address: number for number, host in self._hosts.items()}
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            laid = list(pool.map(lambda host: host.hand.laid(fault), self._hosts.values()))
        return [((numbers[one.rule.source], numbers[one.rule.target]), one) for each in laid for one in each]

    def _address(self, node: int) -> str:
        return self._hosts[node].address


NO_DELAY = "the packet filter of a host lets packets through or vanish, it cannot hold them up"


def described(one: Counted) -> str:
    """A rule that is still there, in words."""
    rule = one.rule
    what = "cuts" if rule.loss is None and rule.rate is None else "limits" if rule.loss is None else "loses some of"
    return f"a rule that {what} what comes from {rule.source} for {rule.target}"
