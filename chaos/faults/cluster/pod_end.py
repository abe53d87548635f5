"""The common part of faults that end a pod with all of its ranks, by an order to the cluster."""

from __future__ import annotations

import signal
from abc import abstractmethod
from typing import Any

from chaos.faults.cluster.in_cluster import NEEDS_CLUSTER, order_once, pod_gone, pod_node
from chaos.faults.kind import FaultKind, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH
from chaos.platforms.kubernetes.pod_node import PodNode


class PodEnd(FaultKind):
    """A fault kind that ends the pod of its victims. The target must be a whole node."""

    effect = DEATH
    signal = signal.SIGKILL
    surface = "pod"
    needs_from_start = NEEDS_CLUSTER

    @abstractmethod
    def order(self, node: PodNode) -> bool:
        """Order the end; return whether the pod was still there.

        Raises FaultMissed where the cluster refuses the order.
        """

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: the cluster itself makes another pod."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Order the end of the rank's very pod, once for all of its ranks."""
        node = pod_node(job, victim)
        order_once(victim, node, lambda: self.order(node))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the pod's end by its UID, and the rank's end with it."""
        return pod_gone(job, victim)
