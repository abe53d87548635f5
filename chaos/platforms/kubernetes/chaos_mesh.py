"""Objects of Chaos Mesh: faults of the network, of files and of names that its daemons make in a pod.

Source: Chaos Mesh 2.6, its pages on NetworkChaos, IOChaos and DNSChaos and ``api/v1alpha1``: the object's status says
which containers a fault has been made in (``AllInjected``, ``experiment.containerRecords``); deleting the object undoes
the fault, and the object goes only when the undoing is done (finalizer ``chaos-mesh/records``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.resources import DNS_CHAOS, IO_CHAOS, NETWORK_CHAOS, Resource
from chaos.platforms.kubernetes.workload import Manifest

_INJECTED = "Injected"


def network_chaos(
    name: str,
    namespace: str,
    pod: str,
    action: str,
    settings: Mapping[str, Any],
    *,
    others: Sequence[str] = (),
    direction: str = "to",
) -> Manifest:
    """Return a network fault of one pod; ``settings`` belong to its action, as ``{"delay": {"latency": "10ms"}}``.

    ``others`` are pods of the same namespace: only the traffic between them and the pod is hit.
    """
    spec = {**_aimed(namespace, pod), "action": action, "direction": direction, **settings}
    if others:
        spec["target"] = {"mode": "all", "selector": {"pods": {namespace: list(others)}}}
    return _object(NETWORK_CHAOS, name, namespace, spec)


def io_chaos(name: str, namespace: str, pod: str, volume: str, action: str, settings: Mapping[str, Any]) -> Manifest:
    """Return a fault of the files of one pod below the mount point ``volume``, in the container that trains."""
    spec = {**_aimed(namespace, pod), "action": action, "volumePath": volume, "path": f"{volume}/**/*"}
    return _object(IO_CHAOS, name, namespace, {**spec, "containerNames": [names.CONTAINER], "percent": 100, **settings})


def dns_chaos(name: str, namespace: str, pod: str, action: str) -> Manifest:
    """Return a fault of the names that are looked up in one pod, whatever the name, in the container that trains."""
    spec = {**_aimed(namespace, pod), "containerNames": [names.CONTAINER], "action": action, "patterns": ["*"]}
    return _object(DNS_CHAOS, name, namespace, spec)


def _aimed(namespace: str, pod: str) -> Manifest:
    return {"mode": "all", "selector": {"pods": {namespace: [pod]}}}


def _object(resource: Resource, name: str, namespace: str, spec: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def injected(subject: Mapping[str, Any], namespace: str, pod: str) -> list[str]:
    """Return the pod's records of containers with the fault; empty as long as Chaos Mesh is not done."""
    status = subject.get("status") or {}
    done = {
        condition.get("type"): condition.get("status")
        for condition in status.get("conditions") or ()
        if isinstance(condition, Mapping)
    }
    if done.get("Selected") != "True" or done.get("AllInjected") != "True":
        return []
    records = (status.get("experiment") or {}).get("containerRecords") or ()
    of_pod = [
        record
        for record in records
        if isinstance(record, Mapping) and _is_of(str(record.get("id", "")), namespace, pod)
    ]
    return [str(record["id"]) for record in of_pod if record.get("phase") == _INJECTED]


def _is_of(record: str, namespace: str, pod: str) -> bool:
    """Return whether a record is the pod's: records are called ``namespace/pod``, or ``namespace/pod/container``."""
    return record.split("/")[:2] == [namespace, pod]
