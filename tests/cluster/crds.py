"""Definitions of the kinds that MindCluster, Volcano and Chaos Mesh add to a cluster, with any content allowed.

They are the API alone: nothing here acts on such an object.
"""

from __future__ import annotations

import functools
from typing import Any

from chaos.history.clock import SYSTEM_CLOCK
from chaos.platforms.kubernetes.api import Api
from chaos.platforms.kubernetes.resources import ASCENDJOB, IO_CHAOS, NETWORK_CHAOS, PODGROUP, VCJOB, Resource
from chaos.run.wait import wait_for

MINDCLUSTER = (ASCENDJOB, VCJOB, PODGROUP)
CHAOS_MESH = (NETWORK_CHAOS, IO_CHAOS)


def define(api: Api, *resources: Resource) -> None:
    """Add kinds to a cluster, and wait until they are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for one in resources:
        api.request("post", path, _definition(one))
    for one in resources:
        wait_for("served", functools.partial(_served, api, one), seconds=30, clock=SYSTEM_CLOCK)


def _served(api: Api, one: Resource) -> bool:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{one.plural}.{one.group}"
    conditions = (api.request("get", path).get("status") or {}).get("conditions") or ()
    return any(seen["type"] == "Established" and seen["status"] == "True" for seen in conditions)


def _definition(one: Resource) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{one.plural}.{one.group}"},
        "spec": {
            "group": one.group,
            "scope": "Namespaced",
            "names": {"plural": one.plural, "kind": one.kind, "singular": one.plural.removesuffix("s")},
            "versions": [
                {"name": one.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
            ],
        },
    }
