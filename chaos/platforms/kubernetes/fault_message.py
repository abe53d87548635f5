"""A public fault on its way: sent in a ConfigMap of the run, looked for in ClusterD's statistics, recovered.

Source: ``clusterd/pkg/application/statistics/fault.go``, ``clusterd/pkg/domain/publicfault`` and MindCluster's page on
its ConfigMaps (August 2026): ClusterD lists the public faults that it holds in the ConfigMap ``statistic-fault-info``
of the namespace ``cluster-system``, by node, each with ``resource`` (the sender), ``devIds``, ``faultId``, ``type``,
``faultCode``, ``level`` and ``faultTime``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from chaos.base.strict_json import parse
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.public_fault import PublicFault, configmap, public_fault
from chaos.platforms.kubernetes.rbac import Rule
from chaos.platforms.kubernetes.resources import CONFIGMAP
from chaos.platforms.kubernetes.run_client import RunClient, RunObject

STATISTICS, STATISTICS_KEY = "statistic-fault-info", "PublicFaults"
STATISTICS_NAMESPACE = "cluster-system"

RIGHTS = (
    Rule(CONFIGMAP, ("create", "delete", "get", "patch")),
    Rule(CONFIGMAP, ("get",), names=(STATISTICS,), place=STATISTICS_NAMESPACE),
)
"""The rights that this file needs in a cluster."""


def name_of(run: str, fault: str, host: str) -> str:
    """Return the name of the ConfigMap that carries a fault."""
    return f"{names.PUBLIC_FAULT_PREFIX}{hashlib.sha256(f'{run} {fault} {host}'.encode()).hexdigest()[:16]}"


def send(run_client: RunClient, fault: str, host: str, message: PublicFault) -> None:
    """Send a message about the fault. Raises ApiError, InvalidPublicFault."""
    run_client.create(configmap(name_of(run_client.run, fault, host), run_client.namespace, {}, message))


def is_sent(run_client: RunClient, fault: str, host: str) -> bool:
    """Return whether the message is there already: another rank that is hit may be on the same node.

    Raises ApiError.
    """
    return run_client.find(CONFIGMAP, name_of(run_client.run, fault, host)) is not None


def is_listed(api: Api, host: str, fault_id: str) -> bool:
    """Return whether ClusterD holds that fault of that node. Raises ApiError, also where its list cannot be read."""
    return listed(api, host, fault_id) is not None


def listed(api: Api, host: str, fault_id: str) -> Mapping[str, Any] | None:
    """Return ClusterD's entry of that fault of that node; None where it does not hold it.

    Raises as :func:`is_listed`.
    """
    path = CONFIGMAP.path(STATISTICS_NAMESPACE, STATISTICS)
    try:
        statistics = api.request("get", path)
    except ApiError as error:
        if error.status == 404:  # ClusterD writes it with the first fault
            return None
        raise
    try:
        by_node: Any = parse((statistics.get("data") or {}).get(STATISTICS_KEY) or "{}")
    except ValueError as error:
        raise ApiError(None, f"{path}: {STATISTICS_KEY} is not JSON: {error}") from error
    if not isinstance(by_node, dict):
        raise ApiError(None, f"{path}: {STATISTICS_KEY} is no object")
    of_node = by_node.get(host)
    return next((entry for entry in of_node or () if isinstance(entry, dict) and fault_id in entry.values()), None)


def recover(run_client: RunClient, fault: str, host: str, now_ms: int) -> str | None:
    """Tell ClusterD that the fault has recovered; return the fault's id, None when none was ever sent.

    The new message is made from the message that was sent, so both are about one fault. Raises ApiError, ValueError.
    """
    current = run_client.find(CONFIGMAP, name_of(run_client.run, fault, host))
    if current is None:
        return None
    sent = PublicFault.model_validate_json(current.object["data"][names.PUBLIC_FAULT_KEY])
    faults = tuple(sent_fault.model_copy(update={"assertion": "recover"}) for sent_fault in sent.faults)
    identity = f"{sent.id.removesuffix('.occur')}.recover"[-128:]
    message = sent.model_copy(update={"id": identity, "timestamp": now_ms, "faults": faults})
    text = json.dumps(message.model_dump(mode="json"), separators=(",", ":"))
    run_client.replace_data(current, {names.PUBLIC_FAULT_KEY: text})
    return sent.faults[0].faultId


def recover_anew(
    run_client: RunClient, fault: str, host: str, held: Mapping[str, Any], described: Mapping[str, Any], now_ms: int
) -> None:
    """Tell ClusterD that a fault has recovered whose message does not exist any more.

    The message is made from ClusterD's entry of the fault (``held``), and from ``described`` (``code``, ``type``,
    ``devices``, ``sender``) where the entry has no value. Raises ApiError, InvalidPublicFault.
    """
    code = _of(str, held.get("faultCode"), described["code"])
    began = _of(int, held.get("faultTime"), now_ms)
    message = public_fault(
        run_client.run,
        fault,
        node=host,
        devices=tuple(_of(list, held.get("devIds"), described["devices"])),
        code=code,
        kind=_of(str, held.get("type"), described["type"]),
        began_ms=began,
        now_ms=now_ms,
        assertion="recover",
        sender=_of(str, held.get("resource"), described["sender"]),
        codes=frozenset({code}),  # ClusterD knows the code: it holds the fault
    )
    send(run_client, fault, host, message)


def is_fault_message(subject: RunObject) -> bool:
    """Return whether an object is the message of a fault: it goes when ClusterD has noticed the fault's recovery."""
    labels = subject.object["metadata"].get("labels") or {}
    return subject.name.startswith(names.PUBLIC_FAULT_PREFIX) and names.PUBLIC_FAULT_LABEL in labels


def _of(kind: type, value: Any, otherwise: Any) -> Any:
    return value if isinstance(value, kind) and value else otherwise


def forget(run_client: RunClient, fault: str, host: str) -> None:
    """Remove the ConfigMap, when ClusterD has noticed its last content."""
    message = run_client.find(CONFIGMAP, name_of(run_client.run, fault, host))
    if message is not None:
        run_client.delete(message)
