"""Definitions of the kinds that MindCluster, Volcano and Chaos Mesh add to a cluster: the essential fields of theirs.

The API server prunes what a schema does not have, and refuses what it forbids. They are the API alone: nothing here
acts on such an object. Sources: Volcano's ``batch.volcano.sh_jobs.yaml`` and ``scheduling.volcano.sh_podgroups.yaml``,
Chaos Mesh's ``chaos-mesh.org_networkchaos.yaml``, ``…_iochaos.yaml``, ``…_dnschaos.yaml`` (names of version 2),
and for AscendJobs the types of Ascend Operator's API, which are those of Kubeflow's jobs.
"""

from __future__ import annotations

import functools
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.resources import (
    ASCENDJOB,
    DNS_CHAOS,
    IO_CHAOS,
    NETWORK_CHAOS,
    PODGROUP,
    VCJOB,
    Resource,
)

MINDCLUSTER = (ASCENDJOB, VCJOB, PODGROUP)
CHAOS_MESH = (NETWORK_CHAOS, IO_CHAOS, DNS_CHAOS)

Schema = dict[str, Any]


def _object(required: tuple[str, ...] = (), **fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, **({"required": list(required)} if required else {})}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


_TEXT: Schema = {"type": "string"}
_TRUTH: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "format": "int32"}
_ANY: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_POD = _ANY
"""A pod's template: the published schemas leave it open, too."""

_EVENTS = _one_of("*", "PodFailed", "PodEvicted", "PodPending", "PodRunning", "Unknown", "TaskCompleted", "TaskFailed")
_POLICY = _object(
    event=_EVENTS,
    events=_list(_EVENTS),
    action=_TEXT,
    exitCode=_COUNT,
    timeout=_TEXT,
)

_ASCENDJOB = _object(
    ("replicaSpecs",),
    schedulerName=_TEXT,
    successPolicy=_TEXT,
    runPolicy=_object(
        backoffLimit=_COUNT,
        cleanPodPolicy=_TEXT,
        ttlSecondsAfterFinished=_COUNT,
        activeDeadlineSeconds=_COUNT,
        schedulingPolicy=_object(minAvailable=_COUNT, queue=_TEXT, priorityClass=_TEXT, minResources=_map(_ANY)),
    ),
    replicaSpecs=_map(
        _object(replicas=_COUNT, restartPolicy=_one_of("Always", "OnFailure", "Never", "ExitCode"), template=_POD)
    ),
)
_VCJOB = _object(
    schedulerName=_TEXT,
    queue=_TEXT,
    minAvailable=_COUNT,
    maxRetry=_COUNT,
    ttlSecondsAfterFinished=_COUNT,
    priorityClassName=_TEXT,
    plugins=_map(_list(_TEXT)),
    policies=_list(_POLICY),
    volumes=_list(_ANY),
    tasks=_list(
        _object(
            name=_TEXT, replicas=_COUNT, minAvailable=_COUNT, maxRetry=_COUNT, policies=_list(_POLICY), template=_POD
        )
    ),
)
_PODGROUP = _object(
    minMember=_COUNT, queue=_TEXT, priorityClassName=_TEXT, minResources=_ANY, minTaskMember=_map(_COUNT)
)
_SELECTOR = _object(
    namespaces=_list(_TEXT),
    labelSelectors=_map(_TEXT),
    annotationSelectors=_map(_TEXT),
    fieldSelectors=_map(_TEXT),
    pods=_map(_list(_TEXT)),
    nodes=_list(_TEXT),
)
_MODE = _one_of("one", "all", "fixed", "fixed-percent", "random-max-percent")
_NETWORK_CHAOS = _object(
    ("action", "mode", "selector"),
    action=_one_of("netem", "delay", "loss", "duplicate", "corrupt", "partition", "bandwidth"),
    mode=_MODE,
    value=_TEXT,
    selector=_SELECTOR,
    direction=_one_of("to", "from", "both"),
    target=_object(("mode", "selector"), mode=_MODE, value=_TEXT, selector=_SELECTOR),
    delay=_object(("latency",), latency=_TEXT, jitter=_TEXT, correlation=_TEXT),
    loss=_object(("loss",), loss=_TEXT, correlation=_TEXT),
    corrupt=_object(("corrupt",), corrupt=_TEXT, correlation=_TEXT),
    bandwidth=_object(("rate", "limit", "buffer"), rate=_TEXT, limit=_COUNT, buffer=_COUNT),
    duration=_TEXT,
    device=_TEXT,
    externalTargets=_list(_TEXT),
)
_IO_CHAOS = _object(
    ("action", "mode", "selector", "volumePath"),
    action=_one_of("latency", "fault", "attrOverride", "mistake"),
    mode=_MODE,
    value=_TEXT,
    selector=_SELECTOR,
    volumePath=_TEXT,
    path=_TEXT,
    methods=_list(_TEXT),
    percent={"type": "integer", "minimum": 0, "maximum": 100},
    delay=_TEXT,
    errno=_COUNT,
    containerNames=_list(_TEXT),
    duration=_TEXT,
)
_DNS_CHAOS = _object(
    ("action", "mode", "selector"),
    action=_one_of("error", "random"),
    mode=_MODE,
    value=_TEXT,
    selector=_SELECTOR,
    patterns=_list(_TEXT),
    containerNames=_list(_TEXT),
    duration=_TEXT,
)
_SPECS = {
    ASCENDJOB: _ASCENDJOB,
    VCJOB: _VCJOB,
    PODGROUP: _PODGROUP,
    NETWORK_CHAOS: _NETWORK_CHAOS,
    IO_CHAOS: _IO_CHAOS,
    DNS_CHAOS: _DNS_CHAOS,
}
_SINGULAR = {NETWORK_CHAOS: "networkchaos", IO_CHAOS: "iochaos", DNS_CHAOS: "dnschaos"}


def define(api: Api, *resources: Resource) -> None:
    """Add kinds to a cluster that it does not have yet, and wait until they are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for resource in resources:
        try:
            api.request("post", path, _definition(resource))
        except ApiError as error:
            if error.status != 409:
                raise
    for resource in resources:
        wait_for("served", functools.partial(_served, api, resource), seconds=30, clock=SYSTEM_CLOCK)


def _served(api: Api, resource: Resource) -> bool:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{resource.plural}.{resource.group}"
    conditions = (api.request("get", path).get("status") or {}).get("conditions") or ()
    if not any(seen["type"] == "Established" and seen["status"] == "True" for seen in conditions):
        return False
    try:
        api.request("get", resource.path("default"))
    except ApiError as error:
        if error.status == 404:  # established, and not served by this server yet
            return False
        raise
    return True


def _definition(resource: Resource) -> dict[str, Any]:
    schema = _object(("spec",), spec=_SPECS[resource], status=_ANY)
    version: dict[str, Any] = {"name": resource.version, "served": True, "storage": True}
    version |= {"schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    if resource.group == NETWORK_CHAOS.group:
        del version["subresources"]  # Chaos Mesh writes the status with the object
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "plural": resource.plural,
                "kind": resource.kind,
                "singular": _SINGULAR.get(resource, resource.plural.removesuffix("s")),
            },
            "versions": [version],
        },
    }
