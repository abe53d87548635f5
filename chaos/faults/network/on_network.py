"""The common part of faults of the network between nodes: the nodes that they hit, and the network."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from chaos.base.rank_sets import named
from chaos.faults.condition import Condition
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job, PlatformError
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.network.links import NodeNetwork
from chaos.platforms.nodes import HasNodes
from chaos.platforms.nodes_job import NodesJob

MEND = "mend-network"
"""The undo action (chaos.faults.network.undo)."""

SURFACE = "network"
FROM_START = "needs nodes with a network of the run's own, which only a scenario makes"

BRIEFLY: Mapping[str, Parameter] = MappingProxyType(
    {
        "seconds": Parameter(
            "how long, in seconds; after longer MindIO TFT takes ranks for lost",
            least=0.1,
            most=2,
            required=True,
        )
    }
)
"""The parameter of kinds that let heartbeats be lost."""


class OnNetwork(Condition):
    """The common part of all such kinds."""

    surface = SURFACE
    needs_from_start = FROM_START

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Remove the fault's rules from the run's network or the hosts, where they also go with their helper."""
        nodes = sorted({victim.identity.node for victim in victims if victim.identity.node is not None})
        arguments: dict[str, Any] = {
            "run_dir": str(victims[0].record.parent.parent.resolve()),
            "fault": fault,
            "nodes": nodes,
        }
        arguments |= {key: value for key, value in victims[0].place.items() if key == "hosts"}
        return [UndoStep(f"{fault}-network", fault, MEND, arguments, "put the run's network back")]


def node_network(job: Job) -> NodeNetwork:
    """Return the network between the nodes. Raises FaultMissed where the platform has none that may be changed."""
    network = job.nodes[0].node_network if isinstance(job, HasNodes) and job.nodes else None
    if network is None:
        raise FaultMissed("the platform that the job lives on has no network between its nodes that may be changed")
    return network


def sides(job: Job, victim: Victim) -> tuple[list[int], list[int]]:
    """Return the nodes of the ranks that the fault hits, and all others. Raises FaultMissed where there is no other."""
    assert isinstance(job, HasNodes)
    targets = set(victim.ranks)
    processes = (
        [process for process in job.last_processes() if process.rank in targets] if isinstance(job, NodesJob) else []
    )
    if {process.rank for process in processes} != targets:
        processes = [process for process in job.processes() if process.rank in targets]
    here = {process.identity.node for process in processes if process.identity.node is not None}
    there = {node.number for node in job.nodes} - here
    if not here or not there:
        raise FaultMissed(f"{named(victim.ranks)} and the others are on one side of any network between nodes")
    return sorted(here), sorted(there)


def own_and_others(job: Job, victim: Victim) -> tuple[int, list[int]]:
    """Return the node of the rank that is hit, and all others.

    No node is asked, so it takes no time from a short fault. Raises FaultMissed where there is no other.
    """
    number = victim.identity.node
    there = [node.number for node in job.nodes if node.number != number] if isinstance(job, HasNodes) else []
    if number is None or not there:
        raise FaultMissed(f"there is no network between the node of rank {victim.rank} and another one")
    return number, there


def missed(error: PlatformError | OSError) -> FaultMissed:
    """Return the failed act as the reason that the report gives."""
    return FaultMissed(f"the run's network could not be changed: {error}")
