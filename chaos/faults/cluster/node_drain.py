"""``node-drain``: cordons a node of the cluster and evicts the run's own pods on it; others' pods stay.

The target must be a whole node (``node: N``). ``cluster.kubernetes.nodes`` must name the node. The pod's
replacement needs another node.

On Ascend: ``kubectl drain`` before a repair.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.cluster.in_cluster import CHANGES_NODES, EVICTS, host_of, pod_gone, pod_node, release_steps
from chaos.faults.cluster.pod_evict import PodEvict
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.rules.hazard import Hazard
from chaos.platforms.kubernetes.client.asking import answer_if_any, ask_with_retries


class NodeDrain(PodEvict):
    """Cordons the node, then evicts the pod."""

    name = "node-drain"
    changes_nodes = True
    rights = (CHANGES_NODES, EVICTS)
    hazard = Hazard(
        "high", "keeps all new pods off a node of the cluster", "uncordoned at the end", device=False, stays=False
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Uncordon the node, if this run holds it."""
        return release_steps(fault, victims, "uncordon")

    def inject(self, job: Job, victim: Victim) -> None:
        """Cordon the node and evict the rank's very pod, once for all of its ranks.

        Raises FaultMissed where the node was cordoned before.
        """
        node = pod_node(job, victim)
        host = host_of(victim)
        cordon = {"spec": {"unschedulable": True}}
        if node.ordered != victim.fault and not ask_with_retries(
            lambda: node.run_client.hold_node(host, victim.fault, cordon)
        ):
            raise FaultMissed(f"node {host} was cordoned before the run, and stays so")
        super().inject(job, victim)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the node's cordon, the pod's end by its UID, and the rank's end with it."""
        shown = pod_gone(job, victim)
        if shown is None:
            return None
        node = answer_if_any(lambda: pod_node(job, victim).run_client.node(host_of(victim)))
        if node is None:
            return None
        return {**shown, "unschedulable": bool(node["spec"].get("unschedulable"))}


KIND = NodeDrain()
"""The kind."""
