"""A stand-in for Ascend Operator and Volcano: it makes the pods of AscendJobs and Volcano jobs, and makes them again.

It does what their documents and sources say of it: pods carry the job's name and their index (``hccl/rankIndex``),
belong to the job, and come back with the same index; a PodGroup has the job's labels; the rank table is written when
all pods with NPUs run. Ascend Operator numbers the pods of each replica type from 0, MindSpore's scheduler too, and
workers from 1 where the scheduler has NPUs (``annotation.go``, ``env.go``, ``labels.go``); which of them it makes first
is not said, so here the scheduler is the last.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import MERGE, Api, ApiError
from chaos.platforms.kubernetes.resources import ASCENDJOB, CONFIGMAP, POD, PODGROUP, VCJOB, Resource
from tests.cluster.looking_again import looking_again

_JOB_LABEL = "job-name"
_ROLES = {"Scheduler": "MS_SCHED", "Worker": "MS_WORKER"}


class Operator:
    """Acts on the jobs of one namespace, whenever it is asked to look."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self.swapped = False
        """Whether the rank table is written with the ranks of the first two servers exchanged."""

    def look(self) -> None:
        """Bring the pods to what the jobs say."""
        for resource in (ASCENDJOB, VCJOB):
            for job in self._api.request("get", resource.path(self._namespace))["items"]:
                if job["metadata"].get("deletionTimestamp") is None:
                    self._act(resource, job)

    def _act(self, resource: Resource, job: dict[str, Any]) -> None:
        name = job["metadata"]["name"]
        owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": job["metadata"]["uid"]}
        owner |= {"controller": True, "blockOwnerDeletion": False}
        group = {
            "apiVersion": PODGROUP.api_version,
            "kind": PODGROUP.kind,
            "metadata": {"name": name, "labels": job["metadata"].get("labels") or {}, "ownerReferences": [owner]},
            "spec": {"minMember": 1},
        }
        self._make(PODGROUP, group)
        wanted = list(_wanted(resource, job))
        query = {"labelSelector": f"{_JOB_LABEL}={name}"}
        there = {
            manifest["metadata"]["name"]: manifest
            for manifest in self._api.request("get", POD.path(self._namespace), query=query)["items"]
        }
        for pod, template in wanted:
            if pod in there:
                continue
            metadata = template.get("metadata") or {}
            made = {
                "name": pod,
                "labels": {**(metadata.get("labels") or {}), _JOB_LABEL: name},
                "annotations": metadata.get("annotations") or {},
                "ownerReferences": [owner],
            }
            self._make(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template["spec"]})
        if resource is ASCENDJOB:
            self._table(name, owner, [there.get(pod) for pod, template in wanted if _npus(template["spec"])])

    def _table(self, name: str, owner: dict[str, Any], trained: list[dict[str, Any] | None]) -> None:
        """Write the rank table, as ``ascend-operator/pkg/ranktable`` does: complete when all pods have addresses."""
        table: dict[str, Any] = {"status": "initializing"}
        running = [one for one in trained if one is not None and (one.get("status") or {}).get("podIP")]
        if len(running) == len(trained):
            servers = []
            for one in sorted(running, key=_index):
                count = _npus(one["spec"])
                rank = _index(one) * count
                devices = [{"device_id": str(number), "rank_id": str(rank + number)} for number in range(count)]
                servers.append({"server_id": "10.0.0.1", "container_ip": one["status"]["podIP"], "device": devices})
            if self.swapped:
                servers[0]["device"], servers[1]["device"] = servers[1]["device"], servers[0]["device"]
            table = {"status": "completed", "server_count": str(len(servers)), "server_list": servers, "version": "1.0"}
        data = {names.RANK_TABLE_KEY: json.dumps(table)}
        table_name = f"{names.RANK_TABLE_PREFIX}{name}"
        metadata = {"name": table_name, "ownerReferences": [owner]}
        self._make(CONFIGMAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        path = CONFIGMAP.path(self._namespace, table_name)
        self._api.request("patch", path, {"data": data}, content_type=MERGE)

    def annotate(self, **annotations: str) -> None:
        """Write annotations on all PodGroups, as ClusterD does while it steers a recovery."""
        for manifest in self._api.request("get", PODGROUP.path(self._namespace))["items"]:
            path = PODGROUP.path(self._namespace, manifest["metadata"]["name"])
            self._api.request("patch", path, {"metadata": {"annotations": annotations}}, content_type=MERGE)

    def _make(self, resource: Resource, manifest: dict[str, Any]) -> None:
        try:
            self._api.request("post", resource.path(self._namespace), manifest)
        except ApiError as error:
            if error.status != 409:
                raise


def _wanted(resource: Resource, job: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and template of each pod of a job, with what its operator adds to the template."""
    name, spec = job["metadata"]["name"], job["spec"]
    if resource is VCJOB:
        index = 0
        for task in spec["tasks"]:
            for number in range(task.get("replicas", 1)):
                yield f"{name}-{task['name']}-{number}", _marked(task["template"], {}, index, {})
                index += 1
        return
    replicas = spec["replicaSpecs"]
    first = int(any(_npus(one["template"]["spec"]) for kind, one in replicas.items() if kind != "Worker"))
    for kind, replica in sorted(replicas.items(), reverse=True):
        for number in range(replica.get("replicas", 1)):
            index = number + first if kind == "Worker" else number
            labels = {names.REPLICA_TYPE: kind.lower(), "training.kubeflow.org/replica-index": str(number)}
            env = {"MS_NODE_RANK": str(index), "MS_ROLE": _ROLES[kind]}
            yield f"{name}-{kind.lower()}-{number}", _marked(replica["template"], labels, index, env)


def _marked(template: dict[str, Any], labels: dict[str, str], index: int, env: dict[str, str]) -> dict[str, Any]:
    made = copy.deepcopy(template)
    metadata = made.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), names.RANK_INDEX: str(index)}
    for container in made["spec"]["containers"]:
        if env and container["name"] == names.CONTAINER:
            added = [{"name": key, "value": value} for key, value in env.items()]
            container["env"] = [*(container.get("env") or []), *added]
    return made


def _index(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["annotations"][names.RANK_INDEX])


def _npus(spec: dict[str, Any]) -> int:
    limits = spec["containers"][0].get("resources", {}).get("limits", {})
    return sum(int(value) for key, value in limits.items() if key.startswith("huawei.com/"))


def operator(api: Api, namespace: str) -> AbstractContextManager[Operator]:
    """Operators that look again and again."""
    return looking_again(Operator(api, namespace), "operator")
