"""A good run as it would have been in two pods of a cluster: what is recorded of them, to be spoilt."""

from __future__ import annotations

from typing import Any

from tests.kit.runs.good_run import GoodRun, Record, record, start_of

FILE = "kubernetes.jsonl"
NODES = 2


def pod_of(node: int, **changed: Any) -> Record:
    """What the history says of a node's pod; ``changed`` is what is otherwise than at the start."""
    fields: Record = {"pod": f"pod-{node}", "uid": f"uid-{node}", "node": node, "host": f"worker-{node}"}
    fields |= {"phase": "Running", "ready": True, "restarts": 0, "deleting": False, "exit": None, "reason": None}
    return {**fields, **changed}


def in_pods(run: GoodRun) -> GoodRun:
    """The same run, of whose pods nothing is told but that they were there from its beginning to its end."""
    run.replan(nodes=NODES)
    run.add("harness", record(0.9, "ranks.placed", by="pods", pods={}))
    run.files[FILE] = [
        start_of("kubernetes", 0.5),
        *(record(0.6 + node / 100, "pod.state", **pod_of(node)) for node in range(NODES)),
        record(26.05, "kubernetes.followed", unfollowed=[]),
    ]
    return run


def replaced(run: GoodRun, node: int, at: float) -> None:
    """Another pod takes the place of a node's, and the first goes afterwards."""
    another = pod_of(node, pod=f"pod-{node}-b", uid=f"uid-{node}-b", host="worker-9", phase="Pending")
    before = {"pod": f"pod-{node}", "uid": f"uid-{node}", "host": f"worker-{node}"}
    run.add(FILE, record(at, "pod.state", **pod_of(node, deleting=True)))
    run.add(FILE, record(at + 0.01, "pod.state", **another))
    run.add(FILE, record(at + 0.02, "pod.rescheduled", **another, before=before))
    run.add(FILE, record(at + 0.03, "pod.gone", **pod_of(node, deleting=True, exit=143)))


def restarted(run: GoodRun, node: int, at: float) -> None:
    """The container of a node's pod is started again in place."""
    run.add(FILE, record(at, "pod.restarted", **pod_of(node, restarts=1), before=0))
