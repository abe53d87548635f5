"""The pods of a run: the present pod of each node, followed in the background and recorded in the history."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.base.clock import Clock
from chaos.history.writer import POD_WRITER, HistoryWriteError, HistoryWriter
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.client.watching import Change, Gap, Lost, Watcher, watch
from chaos.platforms.kubernetes.facts import (
    EventFacts,
    Fact,
    FaultConfigMapFacts,
    PodFacts,
    PodGroupFacts,
    PodState,
)
from chaos.platforms.kubernetes.rbac import CLUSTER_NAMESPACES
from chaos.platforms.kubernetes.resources import CONFIGMAP, EVENT, POD, PODGROUP
from chaos.platforms.kubernetes.run_client import RunClient

HISTORY = "kubernetes.jsonl"


class Pods:
    """Follows a run's objects in a cluster, from its beginning to :meth:`close`. May be used by several threads."""

    def __init__(self, run_client: RunClient, directory: Path, workload: str, clock: Clock) -> None:
        """Begin to follow, and to record in ``directory`` of the run's history."""
        self._run_client = run_client
        self._lock = threading.Lock()
        self._facts = PodFacts()
        self._history = HistoryWriter(directory / HISTORY, writer=POD_WRITER, run=run_client.run, clock=clock)
        selector = f"{names.RUN_LABEL}={run_client.run}"
        events = EventFacts(self._facts)
        self._watchers = [
            self._watcher("pods", POD.path(run_client.namespace), selector, self._facts.take),
            self._watcher("events", EVENT.path(run_client.namespace), "", events.take),
        ]
        if workload != "job":
            groups, maps = PodGroupFacts(), FaultConfigMapFacts()
            self._watchers.append(self._watcher("groups", PODGROUP.path(run_client.namespace), selector, groups.take))
            for namespace in (run_client.namespace, *CLUSTER_NAMESPACES):
                self._watchers.append(self._watcher("faults", CONFIGMAP.path(namespace), "", maps.take))

    @property
    def failed(self) -> tuple[str, ...]:
        """The objects that could not be followed, and why."""
        return tuple(watcher.failed for watcher in self._watchers if watcher.failed is not None)

    @property
    def lost(self) -> str | None:
        """Why the pods themselves are not followed any more; None while they are."""
        return self._watchers[0].failed

    def of_node(self, node: int) -> PodState | None:
        """Return the node's present pod, which exists and is not being deleted. None without one."""
        with self._lock:
            states = [state for state in self._facts.states.values() if state.node == node and not state.deleting]
        return states[-1] if states else None

    def state(self, uid: str) -> PodState | None:
        """Return the last reported state of that pod, also of its end; None if there was none."""
        with self._lock:
            return self._facts.last_states.get(uid)

    def is_there(self, uid: str) -> bool:
        """Return whether the cluster still has that pod."""
        with self._lock:
            return uid in self._facts.states

    def successors(self, uid: str) -> list[PodState]:
        """Return the pods of the same node that came after that pod."""
        with self._lock:
            known = list(self._facts.last_states.values())
        node = next((state.node for state in known if state.uid == uid), None)
        uids = [state.uid for state in known]
        after = known[uids.index(uid) + 1 :] if uid in uids else []
        return [state for state in after if node is not None and state.node == node]

    def close(self) -> None:
        """Stop following."""
        for watcher in self._watchers:
            watcher.close()
        self._record([("kubernetes.followed", {"unfollowed": list(self.failed)})])
        self._history.close()

    def _watcher(self, name: str, path: str, selector: str, take: Callable[[Change], Iterator[Fact]]) -> Watcher:
        def tell(change: Change | Gap) -> None:
            if isinstance(change, Lost):
                self._record([("kubernetes.unfollowed", {"what": name, "why": change.why})])
                return
            if isinstance(change, Gap):
                self._record([("kubernetes.gap", {"why": change.why})])
                return
            with self._lock:
                facts = list(take(change))
            self._record(facts)

        return Watcher(name, lambda stopped: watch(self._run_client.api, path, selector, stopped), tell)

    def _record(self, facts: list[Fact]) -> None:
        for name, fields in facts:
            try:
                self._history.record(name, **fields)
            except HistoryWriteError:
                return  # closed, at the end of the run


def why_waiting(run_client: RunClient, pod: PodState) -> str:
    """Return why a pod does not run, in the cluster's own words, for a message."""
    try:
        query = {"fieldSelector": f"involvedObject.uid={pod.uid}"}
        events = run_client.api.request("get", EVENT.path(run_client.namespace), query=query).get("items") or []
    except ApiError as error:
        return f"pod {pod.pod} is {pod.phase}; its events cannot be read: {error}"
    message = events[-1].get("message") if events else None
    return f"pod {pod.pod} is {pod.phase}" + (f": {message}" if message else "")
