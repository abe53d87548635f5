"""A stand-in for Chaos Mesh: it says in the status of its objects what it would have done, and does nothing in any pod.

As its controller does: a finalizer keeps an object until its records say that the fault has been taken back.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from chaos.platforms.kubernetes.client.api import MERGE, Api
from chaos.platforms.kubernetes.resources import DNS_CHAOS, IO_CHAOS, NETWORK_CHAOS, Resource
from tests.cluster.looking_again import looking_again

_LOOK_SECONDS = 0.2
FINALIZER = "chaos-mesh/records"


class Mesh:
    """Acts on the objects of one namespace. ``stuck``: what it has made it cannot take back."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self.stuck = False
        self.seen: list[dict[str, Any]] = []

    def look(self) -> None:
        """Bring the status of the objects to what they say."""
        for resource in (NETWORK_CHAOS, IO_CHAOS, DNS_CHAOS):
            for manifest in self._api.request("get", resource.path(self._namespace))["items"]:
                self._act(resource, manifest)

    def _act(self, resource: Resource, subject: dict[str, Any]) -> None:
        metadata = subject["metadata"]
        if metadata.get("deletionTimestamp"):
            if not self.stuck and FINALIZER in metadata.get("finalizers", ()):
                self._patch(resource, subject, {"metadata": {"finalizers": []}})
            return
        if FINALIZER in metadata.get("finalizers", ()):
            return
        pods = [pod for listed in subject["spec"]["selector"]["pods"].values() for pod in listed]
        container = "/ascend" if resource is not NETWORK_CHAOS else ""
        records = [{"id": f"{self._namespace}/{pod}{container}", "phase": "Injected"} for pod in pods]
        kinds = ("Selected", "AllInjected")
        status = {
            "conditions": [{"type": kind, "status": "True"} for kind in kinds],
            "experiment": {"desiredPhase": "Run", "containerRecords": records},
        }
        self.seen.append(subject)
        self._patch(resource, subject, {"metadata": {"finalizers": [FINALIZER]}, "status": status})

    def _patch(self, resource: Resource, subject: dict[str, Any], change: dict[str, Any]) -> None:
        path = resource.path(self._namespace, subject["metadata"]["name"])
        self._api.request("patch", path, change, content_type=MERGE)


def mesh(api: Api, namespace: str) -> AbstractContextManager[Mesh]:
    """A controller of Chaos Mesh that looks again and again."""
    return looking_again(Mesh(api, namespace), "chaos-mesh", _LOOK_SECONDS)
