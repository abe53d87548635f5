"""A stand-in for ClusterD: it lists the public faults that it is told of, and does nothing else about them."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

from chaos.platforms.kubernetes.client.api import MERGE, Api, ApiError
from chaos.platforms.kubernetes.fault_message import STATISTICS, STATISTICS_KEY, STATISTICS_NAMESPACE
from chaos.platforms.kubernetes.names import PUBLIC_FAULT_KEY, PUBLIC_FAULT_LABEL
from chaos.platforms.kubernetes.resources import CONFIGMAP

_LOOK_SECONDS = 0.3


class Clusterd:
    """Lists what the ConfigMaps of public faults in a namespace say, when it is asked to look."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._held: dict[str, dict[str, dict[str, Any]]] = {}
        try:
            api.request("post", "/api/v1/namespaces", {"metadata": {"name": STATISTICS_NAMESPACE}})
        except ApiError as error:
            assert error.status == 409

    def look(self) -> None:
        query = {"labelSelector": f"{PUBLIC_FAULT_LABEL}=true"}
        for manifest in self._api.request("get", CONFIGMAP.path(self._namespace), query=query)["items"]:
            for fault in json.loads(manifest["data"][PUBLIC_FAULT_KEY])["faults"]:
                for node in fault["influence"]:
                    held = self._held.setdefault(node["nodeName"], {})
                    if fault["assertion"] == "occur":
                        held[fault["faultId"]] = {"faultId": fault["faultId"], "faultCode": fault["faultCode"]}
                    else:
                        held.pop(fault["faultId"], None)
        listed = json.dumps({node: list(held.values()) for node, held in self._held.items()})
        body = {"metadata": {"name": STATISTICS}, "data": {STATISTICS_KEY: listed}}
        path = CONFIGMAP.path(STATISTICS_NAMESPACE)
        try:
            self._api.request("post", path, body)
        except ApiError as error:
            assert error.status == 409
            self._api.request("patch", CONFIGMAP.path(STATISTICS_NAMESPACE, STATISTICS), body, content_type=MERGE)


@contextlib.contextmanager
def clusterd(api: Api, namespace: str) -> Iterator[Clusterd]:
    """One that looks again and again, as ClusterD does by a watch."""
    made, stopped = Clusterd(api, namespace), threading.Event()

    def look() -> None:
        while not stopped.wait(_LOOK_SECONDS):
            with contextlib.suppress(ApiError):
                made.look()

    thread = threading.Thread(target=look, name="clusterd", daemon=True)
    thread.start()
    try:
        yield made
    finally:
        stopped.set()
        thread.join(30)
