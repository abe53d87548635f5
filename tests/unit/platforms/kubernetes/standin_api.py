"""A stand-in for a cluster's API: it keeps objects in memory, and makes, lists, changes and deletes them by path."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.platforms.kubernetes import platform
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.fault_message import STATISTICS, STATISTICS_KEY, STATISTICS_NAMESPACE
from chaos.platforms.kubernetes.names import PUBLIC_FAULT_KEY, PUBLIC_FAULT_LABEL
from chaos.platforms.kubernetes.resources import CONFIGMAP, NODE
from chaos.platforms.kubernetes.run_client import RunClient

SETTINGS = {"namespace": "train", "image": "none", "nodes": ["worker-1", "worker-2"]}
PLACE = {"kubeconfig": None, "settings": SETTINGS, "host": "worker-1"}
"""What an undo step knows of the run's cluster."""


class Cluster:
    """Objects by their paths. Of selectors it knows equality, of patches the merge; ``looks`` sees every request.

    ``silences`` are raised in place of the next answers. One that comes ``late`` has done what it was asked before.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.client = SimpleNamespace(configuration=SimpleNamespace(host="https://a"))
        self.looks: list[Callable[[], None]] = []
        self.silences: list[ApiError] = []
        self.late = False
        self._count = 0
        for name in SETTINGS["nodes"]:
            self.put(NODE.path(name=name), {"metadata": {"name": name}, "spec": {}})

    def run_client(self, run: str = "run-12345678") -> RunClient:
        return RunClient(cast("Api", self), "train", run, SETTINGS["nodes"])

    def reached(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Undo steps reach this cluster."""
        monkeypatch.setattr(platform, "connect", lambda *_: cast("Api", self))

    def put(self, path: str, found: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        uid = (self.objects.get(path) or {"metadata": {"uid": f"uid-{self._count}"}})["metadata"]["uid"]
        found["metadata"].update(uid=uid, resourceVersion=str(self._count))
        self.objects[path] = found
        return copy.deepcopy(found)

    def request(self, method: str, path: str, body: Any = None, **given: Any) -> dict[str, Any]:
        if self.silences:
            silence = self.silences.pop(0)
            if self.late:
                self._answer(method, path, body, **given)
            raise silence
        return self._answer(method, path, body, **given)

    def _answer(self, method: str, path: str, body: Any = None, **given: Any) -> dict[str, Any]:
        for one in self.looks:
            one()
        body = json.loads(json.dumps(body))
        if method == "post":
            name = f"{path}/{body['metadata']['name']}"
            if name in self.objects:
                raise ApiError(409, f"{name} already exists")
            return self.put(name, body)
        if method == "get" and path.rpartition("/")[2] in _KINDS:
            return {"items": [copy.deepcopy(one) for one in self._in(path, (given.get("query") or {}))]}
        part = path.removesuffix("/status")
        if part not in self.objects:
            raise ApiError(404, f"{path} not found")
        if method == "get":
            return copy.deepcopy(self.objects[part])
        if method == "delete":
            return self.objects.pop(part)
        metadata = body.get("metadata") or {}
        now = self.objects[part]["metadata"]
        if any(metadata.get(key, now[key]) != now[key] for key in ("uid", "resourceVersion")):
            raise ApiError(409, "the object has been modified")
        if part != path:
            return self.put(part, {**self.objects[part], "status": body["status"]})
        return self.put(part, merged(self.objects[part], body))

    def _in(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        wanted = dict(one.split("=") for one in query.get("labelSelector", "").split(",") if one)
        inside = [one for name, one in sorted(self.objects.items()) if name.rpartition("/")[0] == path]
        return [one for one in inside if wanted.items() <= (one["metadata"].get("labels") or {}).items()]


def merged(kept: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A merge patch (RFC 7386)."""
    made = dict(kept)
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key) or {}, value) if isinstance(value, dict) else value
    return made


class Clusterd:
    """Lists the public faults that it is told of; ``deaf``: it does not heed that one has recovered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._held: dict[tuple[str, str], dict[str, Any]] = {}
        self.deaf = False
        cluster.looks.append(self.look)

    def look(self) -> None:
        for path, one in self._cluster.objects.items():
            if PUBLIC_FAULT_LABEL not in (one["metadata"].get("labels") or {}) or not path.startswith(_TRAIN):
                continue
            sent = json.loads(one["data"][PUBLIC_FAULT_KEY])
            for fault in sent["faults"]:
                # As ClusterD does: a fault is known by who told of it and its id.
                key = (sent["resource"], fault["faultId"])
                if fault["assertion"] == "occur":
                    self._held[key] = {
                        "node": fault["influence"][0]["nodeName"],
                        "resource": sent["resource"],
                        "devIds": fault["influence"][0]["deviceIds"],
                        **{name: fault[name] for name in ("faultId", "faultCode", "faultTime")},
                        "type": fault["faultType"],
                    }
                elif not self.deaf:
                    self._held.pop(key, None)
        by_node: dict[str, list[dict[str, Any]]] = {}
        for held in self._held.values():
            by_node.setdefault(held["node"], []).append({key: held[key] for key in held if key != "node"})
        path = CONFIGMAP.path(STATISTICS_NAMESPACE, STATISTICS)
        self._cluster.put(path, {"metadata": {"name": STATISTICS}, "data": {STATISTICS_KEY: json.dumps(by_node)}})


_TRAIN = CONFIGMAP.path("train")
_KINDS = ("configmaps", "pods", "jobs", "ascendjobs", "networkchaos")
