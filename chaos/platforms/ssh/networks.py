"""Hosts whose network faults may change: the inventory must allow it (``network: true``), and the user there be root.

Faults change a host's own packet filter, for packets from the data addresses of the run's other hosts to its own;
delayed packets wait in a device of the fault's own. The harness's own connection is never cut: where the two cannot be
distinguished, the run is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from chaos.base.clock import Clock
from chaos.machine.job.protocol import PlatformError
from chaos.plan.effect import effect_of
from chaos.platforms.network.links import DISCARD
from chaos.platforms.nodes import Site
from chaos.platforms.ssh.host_network import HostNetwork, left_on
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.kind import NETWORKS_NAME
from chaos.platforms.ssh.node import SshNode
from chaos.platforms.ssh.platform import SshNodes, SshPlatform, known_hosts

ANSWERED_SECONDS = 2.0
"""How long a host may take, before the launch, to answer another host at a port that nothing listens on."""


class SshNetworksPlatform(SshPlatform):
    """Makes nodes of hosts whose network the inventory lets faults change."""

    name = NETWORKS_NAME

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """Remove the run's rules from the hosts first, whether or not a fault's own step has."""
        done, left = [], []
        for number, host in enumerate(known_hosts(arguments)):
            try:
                with closing(self.reach(arguments, token, number)) as helper:
                    lifted = helper.lift()
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
        """Return the run's directories on the hosts, and its rules of their networks."""
        rules = []
        for number, host in enumerate(known_hosts(arguments)):
            with closing(self.reach(arguments, token, number)) as helper:
                rules += [f"{host.name}: {leftover}" for leftover in left_on(helper)]
        return [*super().left(arguments, token), *rules]

    def nodes_of(self, site: Site, hosts: Sequence[Host]) -> SshNodes:
        """Return the nodes, not connected yet."""
        return HostsOnNetwork(site, hosts)


class HostOnNetwork(SshNode):
    """A host whose network faults may change."""

    node_network: HostNetwork
    place: Mapping[str, Any]
    """The place for undo steps: the numbers of all hosts of the run, any of which may have rules."""

    def rules_left(self) -> list[str]:
        """Return the rules of faults that remain. A host that was rebooted has none from before."""
        return [] if self.known == "gone" else self.node_network.left(self.number)


class HostsOnNetwork(SshNodes):
    """The hosts of one run, and the network between them."""

    def __init__(self, site: Site, hosts: Sequence[Host]) -> None:
        super().__init__(site, hosts)
        node_network = HostNetwork(self._nodes)
        for node in self._nodes.values():
            assert isinstance(node, HostOnNetwork)
            node.node_network, node.place = node_network, {"hosts": sorted(self._nodes)}

    def node_of(self, number: int, host: Host) -> SshNode:
        """Return a node, not connected yet."""
        return HostOnNetwork(number, host, self._site, self._owners)

    def ready(self) -> Sequence[SshNode]:
        """Return all hosts, each with a remote helper that may make rules, and would not cut off its own harness."""
        ready = super().ready()
        addresses = [node.address for node in ready]
        with ThreadPoolExecutor(len(ready)) as pool:
            list(pool.map(lambda node: check_host(node, addresses, self._site.kinds), ready))
        return ready


def check_host(node: SshNode, addresses: Sequence[str], kinds: Sequence[str]) -> None:
    """Check that faults of these kinds can be made and shown between a host and the others. Raises PlatformError."""
    others = [address for address in addresses if address != node.address]
    effects = {kind: effect_of(kind) for kind in kinds}
    resetting = [kind for kind, effect in effects.items() if effect.resets_connections]
    holding = [kind for kind, effect in effects.items() if effect.holds_packets]
    blocking = [kind for kind, effect in effects.items() if effect.blocks_port]
    try:
        node.helper.check_network(node.address, others, resetting, holding)
        for other in others if blocking else ():
            # The answer distinguishes a blocked port from a host that answers nothing.
            if not node.helper.attempt(node.address, other, DISCARD, ANSWERED_SECONDS):
                raise PlatformError(
                    f"{', '.join(blocking)} could not be shown there: {other} does not answer it at TCP port "
                    f"{DISCARD}, not even by a refusal; let the firewall between them refuse connections instead of "
                    "dropping them"
                )
    except PlatformError as error:
        raise PlatformError(f"{node.host}: faults cannot change its network: {error}") from error
