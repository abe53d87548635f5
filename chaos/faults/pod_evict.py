"""``pod-evict``: a pod is evicted through the API, as a drain does it; disruption budgets count."""

from __future__ import annotations

import signal
from typing import Any

from chaos.faults.in_cluster import EVICTS, NEEDS_CLUSTER, order_once, pod_gone, pod_node
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.platforms.base import Job
from chaos.platforms.kubernetes.api import ApiError
from chaos.platforms.kubernetes.rbac import Rule


class PodEvict:
    """Evicts the pod. On Ascend: what ``kubectl drain`` does to a training pod when a node is taken out for repair.

    The target must be a whole node (``node: N``).
    """

    name = "pod-evict"
    effect = "death"
    signal = signal.SIGKILL
    means = "pod"
    needs_from_start = NEEDS_CLUSTER
    rights: tuple[Rule, ...] = (EVICTS,)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """None: the cluster itself makes another pod."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Evict that very pod, once for all of its ranks. Where a disruption budget forbids it, the fault is missed."""
        node = pod_node(job, victim)
        try:
            order_once(victim, node, lambda: node.own.evict(node.pod))
        except ApiError as error:
            if error.status == 429:
                raise FaultMissed(f"a disruption budget forbids the eviction: {error}") from error
            raise

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The cluster no longer has a pod of that UID, and the rank's process was killed with it."""
        return pod_gone(job, victim)


KIND = PodEvict()
"""The kind."""
