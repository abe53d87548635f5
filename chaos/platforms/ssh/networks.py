"""Hosts whose network faults may change: the inventory must allow it (``network: true``), and the user there be root.

What is changed is a host's own packet filter, for what comes from the data addresses of the run's other hosts for its
own; what is to wait does so in a device of the fault's own. The harness's own connection is never cut: where the two
cannot be told apart, the run is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from chaos.base.clock import Clock
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.network.between import DISCARD
from chaos.platforms.nodes import Site
from chaos.platforms.ssh.between import BetweenHosts, left_on
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.platform import SshNode, SshNodes, SshPlatform, hosts_in, known_hosts
from chaos.scenario.model import Scenario

ANSWERED_SECONDS = 2.0
"""How long a host may take, before the launch, to answer another one at a port that nobody listens on."""


class SshNetworksPlatform(SshPlatform):
    """Makes nodes of hosts whose network the inventory lets faults change."""

    name = "ssh-networks"
    carries = SshPlatform.carries | {"network"}
    meets: Mapping[str, str] = {
        **SshPlatform.meets,
        "tbf": "the packet filter of the hosts (nftables)",
        "impairment": "the kernels of the hosts: loss by their packet filter (nftables), delay by their netem, and a "
        "host whose kernel has none is refused before the job is started",
        "connection-reset": "the kernels of the hosts (sock_diag)",
    }
    """What faults need and the hosts have, with no need of this machine's; the plan says so in these words."""

    def problems(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """What of the scenario's hosts does not do, and which of them may not be changed."""
        found = list(super().problems(scenario, directory))
        yield from found
        if not any(key.startswith("cluster.") for key, *_ in found):
            yield from _host_problems(hosts_in(scenario, directory)[: scenario.cluster.nodes])

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """Take the run's rules off the hosts first, whether or not a fault's own step has."""
        done, left = [], []
        for number, host in enumerate(known_hosts(arguments)):
            try:
                with closing(self.reach(arguments, token, number)) as hand:
                    lifted = hand.lift()
                done += [f"{host.name}: lifted {lifted} rules of its network"] if lifted else []
            except PlatformError as error:
                left.append(str(error))
        try:
            done.append(super().put_back(arguments, token, clock))
        except PlatformError as error:
            left.append(str(error))
        if left:
            raise PlatformError("; ".join(dict.fromkeys(left)))
        return "; ".join(done)

    def left(self, arguments: Mapping[str, Any], token: str) -> Sequence[str]:
        """The run's directories on the hosts, and its rules of their networks."""
        rules = []
        for number, host in enumerate(known_hosts(arguments)):
            with closing(self.reach(arguments, token, number)) as hand:
                rules += [f"{host.name}: {one}" for one in left_on(hand)]
        return [*super().left(arguments, token), *rules]

    def nodes_of(self, site: Site, hosts: Sequence[Host]) -> SshNodes:
        """The nodes, not connected yet."""
        return HostsOnNetwork(site, hosts)


class HostOnNetwork(SshNode):
    """A host whose network faults may change."""

    between: BetweenHosts
    place: Mapping[str, Any]
    """What undo steps have to know: the numbers of all hosts of the run, any of which may have rules."""

    def rules_left(self) -> list[str]:
        """What of faults is still there. A host that was started again has none of before."""
        return [] if self.known == "gone" else self.between.left(self.number)


class HostsOnNetwork(SshNodes):
    """The hosts of one run, and the network between them."""

    def __init__(self, site: Site, hosts: Sequence[Host]) -> None:
        super().__init__(site, hosts)
        between = BetweenHosts(self._nodes)
        for node in self._nodes.values():
            assert isinstance(node, HostOnNetwork)
            node.between, node.place = between, {"hosts": sorted(self._nodes)}

    def node_of(self, number: int, host: Host) -> SshNode:
        """A node, not connected yet."""
        return HostOnNetwork(number, host, self._site, self._owners)

    def ready(self) -> Sequence[SshNode]:
        """All hosts, each with a hand that may lay rules, and would not cut off its own harness."""
        ready = super().ready()
        addresses = [node.address for node in ready]
        with ThreadPoolExecutor(len(ready)) as pool:
            list(pool.map(lambda node: check_host(node, addresses, self._site.kinds), ready))
        return ready


def check_host(node: SshNode, addresses: Sequence[str], kinds: Sequence[str]) -> None:
    """See that faults of these kinds can be made and shown between a host and the others. Raises PlatformError."""
    others = [one for one in addresses if one != node.address]
    try:
        node.hand.check_network(node.address, others, kinds)
        for other in others if "port-blocked" in kinds else ():
            # By that a port that is blocked is told from a host that is deaf.
            if not node.hand.attempt(node.address, other, DISCARD, ANSWERED_SECONDS):
                raise PlatformError(
                    f"port-blocked could not be shown there: {other} does not answer it at TCP port {DISCARD}, not "
                    "even by a refusal; let the firewall between them refuse connections instead of dropping them"
                )
    except PlatformError as error:
        raise PlatformError(f"{node.host}: faults cannot change its network: {error}") from error


_INVENTORY = "cluster.ssh.inventory"


def _host_problems(hosts: Sequence[Host]) -> Iterator[tuple[str, str, str]]:
    by_address: dict[str, str] = {}
    for host in hosts:
        if not host.network:
            told = f"the inventory does not let faults change the network of host {host.name}"
            yield _INVENTORY, told, "where they may, say network: true for it; docs/ssh.md tells what that permits"
        address, advice = host.data_address, "give each host the IPv4 number of its own on the job's network"
        try:
            number = ipaddress.IPv4Address(address)
        except ValueError:
            yield _INVENTORY, f"the data address {address} of host {host.name} is no IPv4 number", advice
            continue
        if number.is_loopback or number.is_multicast or number.is_unspecified:
            yield _INVENTORY, f"the data address {address} of host {host.name} is no address between hosts", advice
        elif (other := by_address.setdefault(address, host.name)) != host.name:
            told = f"hosts {other} and {host.name} have one data address, {address}: they cannot be told apart"
            yield _INVENTORY, told, advice
