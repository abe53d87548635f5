"""The kinds of objects that the harness deals with, and their paths in the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Resource:
    """A kind of objects. ``group`` is empty for the core group; ``plural`` is its name in paths and rules."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``group/version`` as in manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection, of one object, or of a part of it."""
        base = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        parts = [base]
        if self.namespaced:
            if not namespace:
                raise ValueError(f"{self.plural} are in a namespace, and none was given")
            parts.append(f"namespaces/{namespace}")
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


POD = Resource("", "v1", "pods", "Pod")
NODE = Resource("", "v1", "nodes", "Node", namespaced=False)
CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap")
EVENT = Resource("", "v1", "events", "Event")
JOB = Resource("batch", "v1", "jobs", "Job")
VCJOB = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
ASCENDJOB = Resource("mindxdl.gitee.com", "v1", "ascendjobs", "AscendJob")
PODGROUP = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
NETWORK_CHAOS = Resource("chaos-mesh.org", "v1alpha1", "networkchaos", "NetworkChaos")
IO_CHAOS = Resource("chaos-mesh.org", "v1alpha1", "iochaos", "IOChaos")
DNS_CHAOS = Resource("chaos-mesh.org", "v1alpha1", "dnschaos", "DNSChaos")
REVIEW = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False)

WORKLOADS: Mapping[str, Resource] = MappingProxyType({"job": JOB, "vcjob": VCJOB, "ascendjob": ASCENDJOB})
"""The kinds of jobs that can be submitted, by their names in a scenario (``cluster.kubernetes.workload``)."""


def workload_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the workload that a manifest is; None for another kind of object."""
    kind = (manifest.get("apiVersion"), manifest.get("kind"))
    return next((name for name, resource in WORKLOADS.items() if (resource.api_version, resource.kind) == kind), None)


_ALL = (POD, NODE, CONFIGMAP, EVENT, JOB, VCJOB, ASCENDJOB, PODGROUP, NETWORK_CHAOS, IO_CHAOS, DNS_CHAOS)


def resource_of(manifest: Mapping[str, Any]) -> Resource | None:
    """Return the kind of a manifest; None for a kind that the harness does not deal with."""
    kind = (manifest.get("apiVersion"), manifest.get("kind"))
    return next((resource for resource in _ALL if (resource.api_version, resource.kind) == kind), None)
