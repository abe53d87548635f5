"""``node-not-ready``: tells the cluster that a node is not ready; the node and its pods go on.

``cluster.kubernetes.nodes`` must name the node. A running kubelet soon reports ready again (10 s). The cluster may
evict pods, also of others (by default after 300 s).

On Ascend: a node whose kubelet has stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

from chaos.faults.cluster.in_cluster import (
    CHANGES_NODES,
    NEEDS_CLUSTER,
    REPORTS_NODES,
    host_of,
    pod_node,
    release_steps,
)
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import NONE
from chaos.plan.rules.hazard import Hazard
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.kubernetes.client.asking import answer_if_any, ask_with_retries
from chaos.platforms.kubernetes.run_client import RunClient

REASON = "ChaosNodeNotReady"
_TAINT = "node.kubernetes.io/not-ready"


class NodeNotReady(FaultKind):
    """Writes Ready=False into the node's status."""

    name = "node-not-ready"
    effect = NONE
    surface = "cluster"
    needs_from_start = NEEDS_CLUSTER
    parameters: Mapping[str, Parameter] = MappingProxyType({})
    changes_nodes = True
    rights = (CHANGES_NODES, REPORTS_NODES)
    hazard = Hazard(
        "severe",
        "makes the cluster take a node for lost, with the pods of others on it",
        "its kubelet's own report is awaited at the end",
        device=False,
    )

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Report the node ready, if this run holds it, and check that it stays so."""
        return release_steps(fault, victims, "make ready")

    def inject(self, job: Job, victim: Victim) -> None:
        """Mark the node with the run, and write its status."""
        run_client, host = pod_node(job, victim).run_client, host_of(victim)

        def mark() -> None:
            if not run_client.holds_node(host, victim.fault) and _TAINT in _taints(run_client.node(host)):
                raise FaultMissed(f"the cluster took node {host} for not ready before this fault said so")
            run_client.hold_node(host, victim.fault, {}, status=True)
            _report(run_client, host, victim.fault)

        ask_with_retries(mark)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the taint *not ready* by the cluster's own controller."""
        run_client, host = pod_node(job, victim).run_client, host_of(victim)

        def taints_now() -> list[str]:
            taints = _taints(run_client.node(host))
            if _TAINT not in taints:
                _report(run_client, host, victim.fault)
            return taints

        taints = answer_if_any(taints_now)
        return {"signal": None, "host": host, "taints": taints} if taints and _TAINT in taints else None


def _taints(node: Mapping[str, Any]) -> list[str]:
    return [str(taint["key"]) for taint in (node.get("spec") or {}).get("taints") or ()]


def _report(run_client: RunClient, host: str, fault: str) -> None:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "False", "reason": REASON, "message": "a chaos test says so"}
    run_client.report_node(host, fault, {**condition, "lastHeartbeatTime": now, "lastTransitionTime": now})


KIND = NodeNotReady()
"""The kind."""
