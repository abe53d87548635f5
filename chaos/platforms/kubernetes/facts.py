"""The states of a cluster's objects, as events of the history.

A pod with another UID in place of a pod that has gone is *rescheduled*; the same UID with a higher count of
restarts is *restarted in place*. A process that was recovered inside its container shows in neither: the ranks' own
processes show it (`rank.found`), and the pod stays as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.watching import Change
from chaos.platforms.kubernetes.ranks import node_number

Fact = tuple[str, dict[str, Any]]
"""The name of an event of the history, and its fields."""

_MAX_TEXT = 2000


@dataclass(frozen=True)
class PodState:
    """A pod at one moment. ``node`` is the scenario's node, ``host`` the cluster's.

    ``exit`` is the exit code of its container, None until its kubelet reports the end. ``exit_before`` is the exit code
    of the last container that was started again.
    """

    pod: str
    uid: str
    node: int | None
    host: str | None
    phase: str
    ready: bool
    restarts: int
    deleting: bool
    exit: int | None
    reason: str | None
    exit_before: int | None = None
    reason_before: str | None = None


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """Return the pod's state, from its object, of the container that trains."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    listed: list[dict[str, Any]] = list(status.get("containerStatuses") or ())
    container = next((entry for entry in listed if entry.get("name") == names.CONTAINER), {})
    ended = (container.get("state") or {}).get("terminated") or {}
    before = (container.get("lastState") or {}).get("terminated") or {}
    return PodState(
        pod=str(metadata["name"]),
        uid=str(metadata["uid"]),
        node=node_number(pod),
        host=(pod.get("spec") or {}).get("nodeName"),
        phase=str(status.get("phase") or "Unknown"),
        ready=bool(container.get("ready")),
        restarts=int(container.get("restartCount") or 0),
        deleting=metadata.get("deletionTimestamp") is not None,
        exit=ended.get("exitCode"),
        reason=ended.get("reason") or status.get("reason"),
        exit_before=before.get("exitCode"),
        reason_before=before.get("reason"),
    )


class PodFacts:
    """Follows the pods of a run.

    ``states`` holds the present pods, by UID; ``last_states`` the last state of every pod so far, in order of
    appearance.
    """

    def __init__(self) -> None:
        self.states: dict[str, PodState] = {}
        self.last_states: dict[str, PodState] = {}
        self._of_node: dict[int, PodState] = {}

    def take(self, change: Change) -> Iterator[Fact]:
        """Yield the facts that a change brings."""
        state = pod_state(change.object)
        before = self.states.get(state.uid)
        self.last_states[state.uid] = state
        common = {**asdict(state), "found": change.listed}
        if change.kind == "DELETED":
            self.states.pop(state.uid, None)
            yield "pod.gone", common
            return
        self.states[state.uid] = state
        if before == state:
            return
        yield "pod.state", common
        if before is not None and state.restarts > before.restarts:
            yield "pod.restarted", {**common, "before": before.restarts}
        # Once for each pod: the end of a pod is reported after the appearance of its replacement.
        if state.node is None or (before is not None and before.node == state.node):
            return
        last = self._of_node.get(state.node)
        self._of_node[state.node] = state
        if last is not None:
            yield "pod.rescheduled", {**common, "before": {"pod": last.pod, "uid": last.uid, "host": last.host}}


class ChangesOf:
    """Follows chosen parts of objects, and reports a part when it differs from before."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, str]] = {}

    def _changed(self, change: Change, parts: Mapping[str, str]) -> dict[str, str]:
        uid = str(change.object["metadata"]["uid"])
        before = self._parts.get(uid, {})
        if change.kind == "DELETED":
            self._parts.pop(uid, None)
            return {}
        self._parts[uid] = dict(parts)
        return {key: value for key, value in parts.items() if before.get(key) != value}


class PodGroupFacts(ChangesOf):
    """Follows the annotations and the switch by which ClusterD steers a recovery."""

    def take(self, change: Change) -> Iterator[Fact]:
        """Yield one fact for each annotation that differs from before."""
        metadata = change.object["metadata"]
        annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
        parts = {key: str(annotations[key]) for key in names.RECOVERY_ANNOTATIONS if key in annotations}
        parts |= {key: str(labels[key]) for key in (names.PROCESS_RECOVER,) if key in labels}
        parts["phase"] = str((change.object.get("status") or {}).get("phase"))
        for key, value in self._changed(change, parts).items():
            yield "podgroup.changed", {"podgroup": metadata["name"], "key": key, "value": value[:_MAX_TEXT]}


class FaultConfigMapFacts(ChangesOf):
    """Follows the ConfigMaps in which MindCluster shows faults."""

    def take(self, change: Change) -> Iterator[Fact]:
        """Yield one fact for each entry that differs from before: its digest, and its text where it is short."""
        metadata = change.object["metadata"]
        name = str(metadata["name"])
        if not name.startswith(names.FAULT_CONFIGMAPS):
            return
        data = {str(key): str(value) for key, value in (change.object.get("data") or {}).items()}
        for key, value in self._changed(change, data).items():
            digest = hashlib.sha256(value.encode()).hexdigest()
            yield (
                "cluster.fault",
                {"configmap": name, "key": key, "sha256": digest, "size": len(value), "text": value[:_MAX_TEXT]},
            )


class EventFacts:
    """Follows the cluster's own events about pods of the run."""

    def __init__(self, pods: PodFacts) -> None:
        self._pods = pods

    def take(self, change: Change) -> Iterator[Fact]:
        """Yield the event, where it is about a pod that was seen; it may come after the pod has gone."""
        about = change.object.get("involvedObject") or {}
        if change.kind == "DELETED" or about.get("uid") not in self._pods.last_states:
            return
        yield (
            "cluster.event",
            {
                "pod": about.get("name"),
                "uid": about.get("uid"),
                "type": change.object.get("type"),
                "reason": change.object.get("reason"),
                "message": str(change.object.get("message"))[:_MAX_TEXT],
                "count": change.object.get("count"),
            },
        )
