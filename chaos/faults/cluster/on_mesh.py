"""The common part of faults that Chaos Mesh makes in a pod: the object, its status as proof, its end."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import Any

from chaos.faults.cluster.cluster_condition import ClusterCondition
from chaos.faults.cluster.in_cluster import NEEDS_CLUSTER, pod_node
from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.chaos_mesh import injected
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.client.asking import answer_if_any, ask_with_retries
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.rbac import Rule
from chaos.platforms.kubernetes.resources import Resource
from chaos.platforms.kubernetes.workload import Manifest
from chaos.platforms.nodes import HasNodes

SURFACE = "mesh"
DELETE_MESH = "delete-mesh-object"
"""The undo action (chaos.faults.cluster.undo)."""

_REFUSED = (400, 404, 422)


def rights(resource: Resource) -> tuple[Rule, ...]:
    """Return the rights that such a fault needs in a cluster."""
    return (Rule(resource, ("create", "delete", "get")),)


class OnMesh(ClusterCondition):
    """The common part of all these kinds. Each makes one object for each pod that it hits."""

    surface = SURFACE
    needs = ("chaos-mesh",)
    needs_from_start = NEEDS_CLUSTER
    resource: Resource

    @abstractmethod
    def manifest(self, name: str, node: PodNode, job: Job, victim: Victim) -> Manifest:
        """Return the object for one pod."""

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Delete the object; Chaos Mesh keeps it until the fault is removed."""
        nodes = {victim.identity.node: victim for victim in victims if victim.identity.node is not None}
        kind = self.resource.kind
        return [
            UndoStep(
                f"{fault}-mesh-{node}",
                fault,
                DELETE_MESH,
                {**victim.place, "kind": kind, "name": (name := name_of(victim.place["run"], fault, node))},
                f"delete {kind} {name} of the run",
            )
            for node, victim in sorted(nodes.items())
        ]

    def inject(self, job: Job, victim: Victim) -> None:
        """Make the object, once for each pod. Raises FaultMissed where the cluster refuses it."""
        node = pod_node(job, victim)
        run_client, name = node.run_client, name_of(node.run_client.run, victim.fault, node.number)
        manifest = self.manifest(name, node, job, victim)
        try:
            # An object is found by its name where the request that made it got no answer.
            ask_with_retries(lambda: run_client.find(self.resource, name) or run_client.create(manifest))
        except ApiError as error:
            if error.status in _REFUSED:
                raise FaultMissed(f"Chaos Mesh does not take the object: {error}") from error
            raise

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the status of Chaos Mesh's object, by which the fault is in that very pod."""
        return answer_if_any(lambda: self.shown(job, victim))

    def shown(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the API's record of the object. Raises ApiError."""
        node = pod_node(job, victim)
        if node.state() == "gone":
            raise FaultMissed(f"the pod of rank {victim.rank} has gone")
        stored = node.run_client.find(self.resource, name_of(node.run_client.run, victim.fault, node.number))
        records = [] if stored is None else injected(stored.object, node.run_client.namespace, node.pod.name)
        if stored is None or not records:
            return None
        pod = {"name": node.pod.name, "uid": node.pod.uid}
        return {"signal": None, "object": stored.name, "uid": stored.uid, "pod": pod, "injected": records}

    look_every = 1.0
    """The pod may end, or be ended by another fault."""

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the pod has gone."""
        return ask_with_retries(pod_node(job, victim).state) == "gone"

    def over(self, job: Job, victim: Victim) -> bool:
        """Return whether the object has gone, and with it the fault."""
        node = pod_node(job, victim)
        return node.run_client.find(self.resource, name_of(node.run_client.run, victim.fault, node.number)) is None


def name_of(run: str, fault: str, node: int) -> str:
    """Return the name of the object in the run's namespace, where other runs may have faults of the same id.

    It is shorter than 63 characters, the limit for a name that is also a label's value.
    """
    return f"chaos-mesh-{names.run_digest(run)}-{hashlib.sha256(f'{fault} {node}'.encode()).hexdigest()[:16]}"


def other_pods(job: Job, node: PodNode) -> list[str]:
    """Return the run's pods beside the given one. Raises FaultMissed where there is none."""
    nodes = job.nodes if isinstance(job, HasNodes) else ()
    pods = [
        candidate.pod.name for candidate in nodes if isinstance(candidate, PodNode) and candidate.number != node.number
    ]
    if not pods:
        raise FaultMissed("the run has no other pod that traffic could go to")
    return pods


def milliseconds(victim: Victim, name: str) -> str:
    """Return a parameter in milliseconds as Chaos Mesh writes a time."""
    return f"{victim.parameters[name]}ms"
