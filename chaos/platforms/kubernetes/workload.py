"""The manifests of a job: plain Jobs, a Volcano job or an AscendJob, from the scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.resources import WORKLOADS
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes, Volume
from chaos.scenario.models.mechanisms import agent_restarts_all

WAIT = ("sh", "-c", "trap 'exit 143' TERM; sleep 2147483647 & wait")
"""The pod's own program: it waits. The job's launcher is started in it afterwards, and ends with it."""

Manifest = dict[str, Any]

_ADDRESS = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
"""MindIO's communication address; without it a job may not start (MindCluster, the page on a job's YAML)."""


@dataclass(frozen=True)
class Named:
    """The run: ``run`` is its identity as a label, ``name`` a DNS label that begins the names of all of its objects."""

    run: str
    name: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels of each object."""
        return {names.RUN_LABEL: self.run}


def manifests(settings: Kubernetes, job: Job, nodes: int, named: Named) -> list[Manifest]:
    """Return the objects that make the job's pods, one pod for each of the scenario's nodes.

    Raises ValueError for a number of nodes that the workload cannot have.
    """
    if settings.image is None:
        raise ValueError("the job has a manifest of its own (cluster.kubernetes.manifest)")
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: a job needs at least one")
    return _MAKERS[settings.workload](settings, job, nodes, named)


def recovery_labels(job: Job) -> dict[str, str]:
    """Return the labels by which MindCluster recovers the job as the scenario has it."""
    labels = {names.FRAMEWORK: names.MINDSPORE}
    if job.strategies:
        labels[names.PROCESS_RECOVER] = "on"
        labels[names.FAULT_RETRY_TIMES] = str(max(1, job.restart_limit))
    if agent_restarts_all(job.protection):
        labels[names.POD_RESCHEDULING] = "on"
    if job.strategies or agent_restarts_all(job.protection):
        labels[names.FAULT_SCHEDULING] = "grace"
    return labels


def recovery_annotations(job: Job) -> dict[str, str]:
    """Return the annotations by which MindCluster recovers the job.

    They have no blanks: Ascend Operator does not strip them.
    """
    return {names.RECOVER_STRATEGY: ",".join(job.strategies)} if job.strategies else {}


def _jobs(settings: Kubernetes, job: Job, nodes: int, named: Named) -> list[Manifest]:
    made = []
    for node in range(nodes):
        labels = {**named.labels, names.NODE_LABEL: str(node)}
        spec = {"backoffLimit": 1000, "template": _template(settings, job, named, labels)}
        made.append(_object("job", f"{named.name}-n{node}", settings, labels, {}, spec))
    return made


def _vcjob(settings: Kubernetes, job: Job, nodes: int, named: Named) -> list[Manifest]:
    labels = {**named.labels, **recovery_labels(job)}
    tasks = [
        {
            "name": f"n{node}",
            "replicas": 1,
            "template": _template(settings, job, named, {**named.labels, names.NODE_LABEL: str(node)}),
        }
        for node in range(nodes)
    ]
    spec = {
        "minAvailable": nodes,
        "schedulerName": "volcano",
        "queue": "default",
        "maxRetry": max(1, job.restart_limit),
        "policies": [{"event": "PodFailed", "action": "Ignore" if job.strategies else "RestartTask"}],
        "tasks": tasks,
    }
    return [_object("vcjob", named.name, settings, labels, recovery_annotations(job), spec)]


def _ascendjob(settings: Kubernetes, job: Job, nodes: int, named: Named) -> list[Manifest]:
    labels = {**named.labels, **recovery_labels(job)}
    # MindSpore's scheduler takes no NPU; it is a pod of its own, and not a node of the scenario.
    replicas: dict[str, Any] = {
        "Scheduler": {
            "replicas": 1,
            "restartPolicy": "Never",
            "template": _template(settings, job, named, dict(named.labels), npus=0, apart=False),
        },
        "Worker": {
            "replicas": nodes,
            "restartPolicy": "Never",
            "template": _template(settings, job, named, dict(named.labels)),
        },
    }
    spec = {
        "schedulerName": "volcano",
        "successPolicy": "AllWorkers",
        "runPolicy": {
            "backoffLimit": max(1, job.restart_limit),
            "schedulingPolicy": {"minAvailable": nodes + 1, "queue": "default"},
        },
        "replicaSpecs": replicas,
    }
    return [_object("ascendjob", named.name, settings, labels, recovery_annotations(job), spec)]


_MAKERS = {"job": _jobs, "vcjob": _vcjob, "ascendjob": _ascendjob}


def _object(
    workload: str, name: str, settings: Kubernetes, labels: dict[str, str], annotations: dict[str, str], spec: Manifest
) -> Manifest:
    resource = WORKLOADS[workload]
    metadata: Manifest = {"name": name, "namespace": settings.namespace, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _template(
    settings: Kubernetes,
    job: Job,
    named: Named,
    labels: dict[str, str],
    *,
    npus: int | None = None,
    apart: bool = True,
) -> Manifest:
    count = settings.npus if npus is None else npus
    container: Manifest = {
        "name": names.CONTAINER,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(WAIT),
        "env": [_ADDRESS],
    }
    if job.strategies:
        container["env"] = [_ADDRESS, {"name": "TTP_PORT", "value": str(names.TTP_PORT)}]
        container["ports"] = [
            {"containerPort": names.TTP_PORT, "name": "ttp-port"},
            {"containerPort": names.TASKD_PORT, "name": "taskd-port"},
        ]
    if count:
        amount = {settings.npu_resource: count}
        container["resources"] = {"limits": amount, "requests": amount}
    # The job needs no access to the API, so its pods get no token.
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
    }
    if settings.volume is not None:
        container["volumeMounts"] = [{"name": "run", "mountPath": settings.volume.path}]
        spec["volumes"] = [{"name": "run", **_source(settings.volume)}]
    if settings.node_selector:
        spec["nodeSelector"] = dict(settings.node_selector)
    if settings.spread and apart:
        spec["affinity"] = {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": dict(named.labels)},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ]
            }
        }
    return {"metadata": {"labels": labels}, "spec": spec}


def _source(volume: Volume) -> Manifest:
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim}}
    if volume.host_path is not None:
        return {"hostPath": {"path": volume.host_path, "type": "Directory"}}
    assert volume.nfs is not None
    server, _, path = volume.nfs.partition(":")
    return {"nfs": {"server": server, "path": path}}
