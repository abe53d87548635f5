"""Which rank runs in which pod: by the rank table that Ascend Operator writes, or by the pods themselves.

The rank table is the ConfigMap ``rings-config-<job>``, key ``hccl.json`` (versions 1.0 and 1.2; 2.0 names no servers).
Without one a pod's own number decides: this harness's label, the annotation ``hccl/rankIndex``, the index that an
indexed Job or Volcano gives its pods, or MS_NODE_RANK.
Ascend Operator numbers the pods of each replica type from 0, so the pod of MindSpore's scheduler has the number of a
worker. Where the scheduler has NPUs ranks run in its pod too: it keeps 0, and the workers count from 1.
Source: MindCluster's page on hccl.json, ``ascend-operator/pkg/ranktable`` and ``pkg/controllers/v1``, there
``annotation.go``, ``env.go`` and ``labels.go`` (August 2026).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.base.strict_json import parse
from chaos.platforms.kubernetes import names

COMPLETED = "completed"


class UnreadableRankTable(ValueError):
    """The rank table says nothing by which ranks could be found. The text says why."""


@dataclass(frozen=True)
class Server:
    """One server of a rank table: the address of its pod, the address of its node, and its ranks with their NPUs."""

    pod_ip: str
    host_ip: str
    ranks: Mapping[int, int]


def read_rank_table(text: str) -> tuple[Server, ...] | None:
    """Return the servers of a rank table; None while Ascend Operator is still writing it.

    Raises UnreadableRankTable.
    """
    try:
        table = parse(text)
    except ValueError as error:
        raise UnreadableRankTable(f"{names.RANK_TABLE_KEY} is not JSON: {error}") from error
    if not isinstance(table, dict):
        raise UnreadableRankTable(f"{names.RANK_TABLE_KEY} is no object")
    if table.get("status") != COMPLETED:
        return None
    listed = table.get("server_list")
    if not isinstance(listed, list) or not listed:
        version = table.get("version")
        raise UnreadableRankTable(f"{names.RANK_TABLE_KEY} of version {version} has no server_list to find pods by")
    servers = tuple(_server(server) for server in listed)
    ranks = sorted(rank for server in servers for rank in server.ranks)
    if ranks != list(range(len(ranks))):
        raise UnreadableRankTable(f"{names.RANK_TABLE_KEY}: its ranks are {ranks}, not 0 to {len(ranks) - 1} once each")
    return servers


def _server(entry: Any) -> Server:
    devices = entry.get("device") if isinstance(entry, dict) else None
    if not isinstance(devices, list) or not devices:
        raise UnreadableRankTable(f"{names.RANK_TABLE_KEY}: a server has no list of devices")
    ranks: dict[int, int] = {}
    for device in devices:
        rank, number = (_number(device, key) for key in ("rank_id", "device_id"))
        if rank in ranks:
            raise UnreadableRankTable(f"{names.RANK_TABLE_KEY}: rank {rank} is listed twice")
        ranks[rank] = number
    host = str(entry.get("host_ip") or entry.get("server_id") or "")
    return Server(str(entry.get("container_ip") or ""), host, ranks)


def _number(device: Any, key: str) -> int:
    value = device.get(key) if isinstance(device, dict) else None
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()):
        raise UnreadableRankTable(f"{names.RANK_TABLE_KEY}: {key} is {value!r}, not a number")
    return int(text)


_NUMBERS = (
    ("annotations", names.RANK_INDEX),
    ("annotations", names.COMPLETION_INDEX),
    ("labels", names.TASK_INDEX),
    ("annotations", names.TASK_INDEX),
)
"""Sources of a pod's number behind this harness's own label, the surest first."""


def node_number(pod: Mapping[str, Any]) -> int | None:
    """Return the number of the job's node that a pod is; None without a number, and for a scheduler without NPUs."""
    metadata = pod.get("metadata") or {}
    label = _whole((metadata.get("labels") or {}).get(names.NODE_LABEL))
    if label is not None:
        return label
    container = next((candidate for candidate in _containers(pod) if candidate.get("name") == names.CONTAINER), {})
    environment = {variable.get("name"): variable.get("value") for variable in container.get("env") or ()}
    kind = (metadata.get("labels") or {}).get(names.REPLICA_TYPE)
    schedules = kind == names.SCHEDULER or environment.get("MS_ROLE") == names.SCHEDULER_ROLE
    if schedules and not any(map(_has_npus, _containers(pod))):
        return None
    numbers = [_whole((metadata.get(source) or {}).get(key)) for source, key in _NUMBERS]
    return next((number for number in (*numbers, _whole(environment.get("MS_NODE_RANK"))) if number is not None), None)


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((pod.get("spec") or {}).get("containers") or ())


def _has_npus(container: Mapping[str, Any]) -> bool:
    limits = (container.get("resources") or {}).get("limits") or {}
    return any(key.startswith(names.NPU_PREFIX) and _whole(value) for key, value in limits.items())


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() else None


def ranks_to_pods(
    pods: Iterable[Mapping[str, Any]], *, servers: tuple[Server, ...] | None, ranks: int, nodes: int
) -> dict[int, str]:
    """Return the name of the pod of every rank that has one, among the present ``pods``.

    By the rank table where there is one; a pod whose address is not in it is not a pod of a rank (yet). Otherwise the
    pods' numbers count, with ranks spread over ``nodes`` evenly and in order. Raises UnreadableRankTable where two pods
    claim the same ranks.
    """
    each = ranks // nodes
    pod_names: dict[int, str] = {}
    for pod in pods:
        name = str(pod["metadata"]["name"])
        if pod["metadata"].get("deletionTimestamp"):
            continue  # it is going, and its replacement has the ranks
        if servers is not None:
            address = (pod.get("status") or {}).get("podIP")
            addressed = next((server for server in servers if address and server.pod_ip == address), None)
            held: Iterable[int] = addressed.ranks if addressed is not None else ()
        else:
            number = node_number(pod)
            held = () if number is None or number >= nodes else range(number * each, (number + 1) * each)
        for rank in held:
            if rank in pod_names:
                raise UnreadableRankTable(f"rank {rank} would be in two pods, {pod_names[rank]} and {name}")
            pod_names[rank] = name
    return pod_names
