"""``node-cordon``: keeps new pods off the node of a rank's pod; the pods on it go on.

``cluster.kubernetes.nodes`` must name the node.

On Ascend: ``kubectl cordon``.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.cluster.cluster_condition import ClusterCondition
from chaos.faults.cluster.in_cluster import CHANGES_NODES, NEEDS_CLUSTER, host_of, pod_node, release_steps
from chaos.faults.condition import LASTS
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.rules.hazard import Hazard
from chaos.platforms.kubernetes.client.asking import answer_if_any, ask_with_retries


class NodeCordon(ClusterCondition):
    """Cordons the node that a rank's pod is on."""

    name = "node-cordon"
    surface = "cluster"
    needs_from_start = NEEDS_CLUSTER
    parameters = LASTS
    changes_nodes = True
    rights = (CHANGES_NODES,)
    hazard = Hazard("high", "keeps all new pods off a node of the cluster", "uncordoned at the end", device=False)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Uncordon the node, if this run holds it."""
        return release_steps(fault, victims, "uncordon")

    def inject(self, job: Job, victim: Victim) -> None:
        """Mark the node with the run, and make it unschedulable.

        Raises FaultMissed where it was unschedulable before.
        """
        run_client, host = pod_node(job, victim).run_client, host_of(victim)
        if not ask_with_retries(lambda: run_client.hold_node(host, victim.fault, {"spec": {"unschedulable": True}})):
            raise FaultMissed(f"node {host} was cordoned before the run, and stays so")

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the node's object, which takes no pods."""
        return answer_if_any(lambda: self.shown(job, victim))

    def shown(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the API's record of the node. Raises ApiError."""
        host = host_of(victim)
        if not pod_node(job, victim).run_client.node(host)["spec"].get("unschedulable"):
            return None
        return {"signal": None, "host": host, "unschedulable": True}

    def over(self, job: Job, victim: Victim) -> bool:
        """Return whether the run no longer holds the node for this fault."""
        return not pod_node(job, victim).run_client.holds_node(host_of(victim), victim.fault)


KIND = NodeCordon()
"""The kind."""
