"""What faults of the network between nodes have in common: which nodes they hit, and the router that is asked."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from chaos.faults.condition import Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.platforms.base import Job, PlatformError
from chaos.platforms.network.namespace import Namespace
from chaos.platforms.network.router import Router
from chaos.platforms.procfs import PROC, read_text

MEND = "mend-network"
"""The undo action (chaos.run.undo_network)."""

MEANS = "network"
FROM_START = "needs nodes with a network of the run's own, which only a scenario makes"


@runtime_checkable
class HasNodes(Protocol):
    """A job on nodes."""

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The nodes, in order."""


class OnNetwork(Condition):
    """The part that is the same for all."""

    means = MEANS
    needs_from_start = FROM_START

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Take the fault's rules out of the run's network; with the harness they are gone together with it."""
        nodes = sorted({one.identity.node for one in victims if one.identity.node is not None})
        arguments = {"run_dir": str(victims[0].record.parent.parent.resolve()), "fault": fault, "nodes": nodes}
        return [UndoStep(f"{fault}-network", fault, MEND, arguments, "put the run's network back")]


def router_of(job: Job) -> Router:
    """The router between the nodes. Raises FaultMissed where the platform has none."""
    routers = [getattr(node, "router", None) for node in job.nodes] if isinstance(job, HasNodes) else []
    if not routers or not isinstance(routers[0], Router):
        raise FaultMissed("the platform that the job lives on has no network of the run's own between its nodes")
    return routers[0]


def namespace_of(job: Job, node: int) -> Namespace:
    """The network namespace of a node. Raises FaultMissed where the platform has none."""
    for one in job.nodes if isinstance(job, HasNodes) else ():
        if one.number == node and isinstance(found := getattr(one, "namespace", None), Namespace):
            return found
    raise FaultMissed(f"node {node} has no network of its own on the platform that the job lives on")


def sides(job: Job, victim: Victim) -> tuple[list[int], list[int]]:
    """The nodes of the ranks that the fault hits, and all others. Raises FaultMissed where there is no other."""
    assert isinstance(job, HasNodes)
    here = {one.identity.node for one in job.processes() if one.rank in victim.ranks and one.identity.node is not None}
    there = {node.number for node in job.nodes} - here
    if not here or not there:
        raise FaultMissed(f"ranks {list(victim.ranks)} and the others are on one side of any network between nodes")
    return sorted(here), sorted(there)


def own_and_others(job: Job, victim: Victim) -> tuple[int, list[int]]:
    """The node of the rank that is hit, and all others. No node is asked, so it takes no time from a short fault.

    Raises FaultMissed where there is no other.
    """
    own = victim.identity.node
    there = [node.number for node in job.nodes if node.number != own] if isinstance(job, HasNodes) else []
    if own is None or not there:
        raise FaultMissed(f"there is no network between the node of rank {victim.rank} and another one")
    return own, there


def connections(namespace: Namespace, addresses: set[str], port: int | None = None) -> int:
    """How many connections the kernel has between a network namespace, or one TCP port of it, and these addresses."""
    found = 0
    for line in (read_text(namespace.holder.pid, "net/tcp", PROC) or "").splitlines()[1:]:
        fields = line.split()
        raw, state = fields[2].split(":")[0], fields[3]
        remote = ".".join(str(one) for one in reversed(bytes.fromhex(raw)))
        at_port = port is None or int(fields[1].split(":")[1], 16) == port
        found += state == "01" and remote in addresses and at_port
    return found


def missed(error: PlatformError | OSError) -> FaultMissed:
    """What the router could not do, as the reason that the report gives."""
    return FaultMissed(f"the run's network could not be changed: {error}")
