"""``pod-delete``: a pod is deleted with all of its ranks, and the cluster makes another in its place."""

from __future__ import annotations

import signal
from typing import Any

from chaos.faults.in_cluster import NEEDS_CLUSTER, order_once, pod_gone, pod_node
from chaos.faults.kind import Victim
from chaos.history.ledger import UndoStep
from chaos.platforms.base import Job

GRACE_SECONDS = 1
"""More than 0: with 0 a cluster forgets the pod before its node has confirmed that it ended."""


class PodDelete:
    """Deletes the pod, by its UID. On Ascend: ``kubectl delete pod``, or a rescheduling of the pod by MindCluster.

    The target must be a whole node (``node: N``). The job's controller makes another pod, with another UID and perhaps
    on another node; the history says so (`pod.rescheduled`).
    """

    name = "pod-delete"
    effect = "death"
    signal = signal.SIGKILL
    means = "pod"
    needs_from_start = NEEDS_CLUSTER

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """None: the cluster itself makes another pod."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Delete that very pod, once for all of its ranks."""
        node = pod_node(job, victim)
        order_once(victim, node, lambda: node.own.delete(node.pod, grace_seconds=GRACE_SECONDS))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The cluster no longer has a pod of that UID, and the rank's process was killed with it."""
        return pod_gone(job, victim)


KIND = PodDelete()
"""The kind."""
