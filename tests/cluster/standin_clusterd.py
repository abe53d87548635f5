"""A stand-in for ClusterD: it lists the public faults that it is told of, and does nothing else about them."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any

from chaos.platforms.kubernetes.client.api import MERGE, Api, ApiError
from chaos.platforms.kubernetes.fault_message import STATISTICS, STATISTICS_KEY, STATISTICS_NAMESPACE
from chaos.platforms.kubernetes.names import PUBLIC_FAULT_KEY, PUBLIC_FAULT_LABEL
from chaos.platforms.kubernetes.resources import CONFIGMAP
from tests.cluster.looking_again import looking_again


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


def clusterd(api: Api, namespace: str) -> AbstractContextManager[Clusterd]:
    """A ClusterD that looks again and again."""
    return looking_again(Clusterd(api, namespace), "clusterd")
