"""The platform ``ssh``: a node is a host of an inventory. sshd, the kernel and the job's own launcher do the work."""

from __future__ import annotations

import contextlib
import getpass
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.base.clock import Clock
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import HelperLost, PlatformError
from chaos.machine.remote.client import HelperClient
from chaos.plan.effect import effect_of
from chaos.platforms.node_set import NodeSet
from chaos.platforms.nodes import END_NODES, Site
from chaos.platforms.remote_requirements import Asked, refuse_lacking
from chaos.platforms.ssh.hosts import hosts_in, path_of
from chaos.platforms.ssh.inventory import Host, read_inventory
from chaos.platforms.ssh.kind import KIND
from chaos.platforms.ssh.node import SshNode
from chaos.scenario.errors import ScenarioError
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.ssh import Ssh

if TYPE_CHECKING:
    pass


class SshPlatform:
    """Makes nodes of hosts. Nothing is installed on them: a remote helper is copied there, and removed."""

    name = KIND.name

    def simulated(self, nodes: int) -> str | None:
        """Return None: the nodes are real hosts."""
        del nodes
        return None

    def names_of_nodes(self, scenario: Scenario, directory: Path) -> Sequence[str]:
        """Return the hosts' names in the inventory. Raises ScenarioError where the inventory is invalid."""
        return [host.name for host in hosts_in(scenario, directory)[: scenario.cluster.nodes]]

    def hosts_as_given(self, scenario: Scenario, directory: Path) -> Sequence[Mapping[str, Any]]:
        """Return the inventory's entry of each node's host, in order.

        Raises ScenarioError where the inventory is invalid.
        """
        return [host.as_given() for host in hosts_in(scenario, directory)[: scenario.cluster.nodes]]

    def open(self, site: Site) -> SshNodes:
        """Connect to the hosts and start a remote helper on each."""
        hosts = hosts_of(site)
        site.ledger.record(
            UndoStep(
                "nodes",
                None,
                END_NODES,
                {"platform": self.name, "hosts": [host.as_json() for host in hosts]},
                f"end the run's processes on {', '.join(host.name for host in hosts)} and remove its directories there",
            )
        )
        nodes = self.nodes_of(site, hosts)
        try:
            nodes.ready()
            nodes.check()
        except BaseException:
            nodes.close()
            raise
        return nodes

    def nodes_of(self, site: Site, hosts: Sequence[Host]) -> SshNodes:
        """Return the nodes, not connected yet."""
        return SshNodes(site, hosts)

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """End the run's processes on the hosts, and remove its directories there."""
        del clock
        from chaos.platforms.ssh.putting_back import clean

        done, left = [], []
        for number, host in enumerate(known_hosts(arguments)):
            try:
                done.append(f"{host.name}: {clean(host, token, number)}")
            except PlatformError as error:
                left.append(str(error))
        if left:
            raise PlatformError(f"{'; '.join(left)}; when they answer again, run chaos heal")
        return "; ".join(done)

    def left(self, arguments: Mapping[str, Any], token: str) -> Sequence[str]:
        """Return the run's directories on the hosts."""
        from chaos.platforms.ssh.putting_back import left_on

        return [
            leftover for number, host in enumerate(known_hosts(arguments)) for leftover in left_on(host, token, number)
        ]

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HelperClient:
        """Return a new remote helper on a host.

        It needs no directory there, since a fault may outlive the directory.
        """
        from chaos.platforms.ssh.putting_back import helper_without_directory, restarted_helper

        host = known_hosts(arguments)[node]
        return restarted_helper(host, token, node) or helper_without_directory(host, token, node)


def hosts_of(site: Site) -> tuple[Host, ...]:
    """Return the hosts that the run's nodes are. Raises PlatformError where the inventory is invalid."""
    try:
        import paramiko  # noqa: F401
    except ImportError as error:
        raise PlatformError("the platform ssh needs paramiko: pip install 'chaos-ascend[ssh]'") from error
    if not isinstance(site.settings, Ssh):
        raise PlatformError("the platform ssh needs an inventory: --inventory FILE, or cluster.ssh.inventory")
    path = path_of(site.settings, site.readable[0])
    try:
        hosts = read_inventory(path, user=_own_name(), python=sys.executable)
    except ScenarioError as error:
        raise PlatformError(str(error)) from error
    if nameless := [host.name for host in hosts if not host.user]:
        raise PlatformError(f"{path}: say `user` of {', '.join(nameless)}: who runs chaos has no name on this machine")
    if len(hosts) < site.nodes:
        raise PlatformError(f"{path}: has {len(hosts)} hosts, and the scenario has {site.nodes} nodes")
    return hosts[: site.nodes]


def _own_name() -> str:
    """Return the name of this process's user; empty where neither the environment nor the system has one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def known_hosts(arguments: Mapping[str, Any]) -> list[Host]:
    """Return the hosts that an END_NODES step names. Raises PlatformError."""
    try:
        return [Host.from_json(host) for host in arguments["hosts"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise PlatformError(f"the undo step does not say which hosts: {error}") from error


class SshNodes(NodeSet[SshNode]):
    """The hosts of one run."""

    def __init__(self, site: Site, hosts: Sequence[Host]) -> None:
        super().__init__(site)
        self._owners: dict[Path, str] = {}
        self._nodes = {number: self.node_of(number, host) for number, host in enumerate(hosts)}

    def node_of(self, number: int, host: Host) -> SshNode:
        """Return a node, not connected yet."""
        return SshNode(number, host, self._site, self._owners)

    @property
    def python(self) -> Path:
        """The interpreter of the ranks, by its path here; each host has its own."""
        return self._site.python

    def ready(self) -> Sequence[SshNode]:
        """Return all hosts, each with a remote helper that answers."""
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            list(pool.map(SshNode.ready, self._nodes.values()))
        return self.all()

    def check(self) -> None:
        """Check that the hosts have everything the job and its faults need, once for a run. Raises PlatformError."""
        _refuse_one_machine(self._nodes.values())
        asked = [Asked(str(node.host), node.host.python, node.helper) for node in self._nodes.values()]
        refuse_lacking(self._site, asked, "install it there, or name another 'python' in the inventory")
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            list(pool.map(lambda node: _check(node, self._site), self._nodes.values()))

    def close(self) -> None:
        """Close the remote helpers, as far as there are any."""
        for node in self._nodes.values():
            with contextlib.suppress(HelperLost):
                node.close()


def _refuse_one_machine(nodes: Iterable[SshNode]) -> None:
    """Check that no two hosts are one machine: its launchers would take each other's ports, and write the same logs.

    Containers of one machine with networks of their own count as separate hosts. Raises PlatformError.
    """
    met: dict[tuple[str, str], Host] = {}
    for node in nodes:
        who = node.helper.introduction
        if not who.network:
            continue
        first = met.setdefault((who.boot, who.network), node.host)
        if first is not node.host:
            raise PlatformError(
                f"{first} and {node.host} are one machine ({who.host}, boot {who.boot}): name each machine once in the "
                "inventory, and use fewer nodes"
            )


def _check(node: SshNode, site: Site) -> None:
    """Check that a host has everything that faults of devices need. Raises PlatformError."""
    kinds = sorted({kind for kind in site.kinds if effect_of(kind).on_card})
    if kinds and (lacking := node.helper.lacking_tools()):
        raise PlatformError(f"{node.host}: {' and '.join(kinds)} cannot be made there: {', '.join(lacking)}")
