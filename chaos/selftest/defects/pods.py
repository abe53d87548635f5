"""Defects of a job's pods: one is not left as it was, none was followed, or another one was deleted."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.files import removed
from chaos.selftest.records import Record, Records, chain, recorded

BASE = "pods"
KEPT, DELETED = 0, 1
"""The node whose pod stays throughout, and the node whose pod is deleted after the repair."""

_KEEPS = "recovery 1 by UCE keeps the pods of nodes 0, 1"
_ANOTHER = "00000000-0000-4000-8000-000000000000"


_defect = partial(file_defect, base=BASE, check="mechanism")


def _in_repair(**what: object) -> Mutate:
    """Return a mutation: the cluster reports another fact about node 0's pod just after the memory error has landed."""
    return recorded(lambda records: _tell(records, **what))


def _replaced(records: Records) -> None:
    """Replace the pod of node 0 by another one just after the memory error has landed."""
    running = records.last("pod.state", node=KEPT, phase="Running")
    before = {key: running[key] for key in ("pod", "uid", "host")}
    _tell(records, event="pod.rescheduled", pod=f"{running['pod']}-b", uid=_ANOTHER, before=before)


def _tell(records: Records, **what: object) -> None:
    landed = records.first("fault.landed", fault="memory")
    running = records.last("pod.state", node=KEPT, phase="Running")
    at = {key: landed[key] + 1_000_000 for key in ("mono", "wall")}
    reports = [record for record in records.all() if record["event"].startswith("pod.") and record["mono"] < at["mono"]]
    records.insert(reports[-1], **{**running, "before": None, **what, **at})


def _unfollowed(records: Records) -> None:
    state = records.last("pod.state", node=KEPT)
    lost = records.insert(state, event="kubernetes.unfollowed", what="pods", why="the API server refuses the watch")
    for key in set(lost) & {"pod", "uid", "node", "host", "phase"}:
        del lost[key]
    records.first("kubernetes.followed")["unfollowed"] = ["pods"]


def _evidence(records: Records) -> list[Record]:
    evidence: list[Record] = records.first("fault.landed", fault="pod")["evidence"]
    return evidence


def _without(key: str) -> Mutate:
    def change(records: Records) -> None:
        for record in _evidence(records):
            del record[key]

    return recorded(change)


def _of_the_other_node(records: Records) -> None:
    """Record the deletion of node 0's pod instead."""
    other = records.first("pod.state", node=KEPT, phase="Running")
    for record in _evidence(records):
        record["pod"] = {"name": other["pod"], "uid": other["uid"], "host": other["host"]}


def _never_went(records: Records) -> None:
    """Remove the pod's end from the record of the cluster: the pod runs on, and no other has come."""
    before = records.first("pod.rescheduled", node=DELETED)["before"]["uid"]
    records.drop([record for record in records.all(node=DELETED) if _is_of_its_end(record, before)])


def _is_of_its_end(record: Record, uid: str) -> bool:
    if not record["event"].startswith("pod."):
        return False
    return bool(
        record["uid"] != uid or record["event"] == "pod.gone" or record["deleting"] or record["phase"] == "Failed"
    )


def _went_before(records: Records) -> None:
    """Let the cluster begin to delete the pod before this run orders it."""
    act = records.first("fault.injecting", fault="pod")
    records.first("pod.state", node=DELETED, deleting=True).update(
        {key: act[key] - 1_000_000 for key in ("mono", "wall")}
    )


DEFECTS = (
    _defect(
        "pod-replaced-in-repair",
        "The error was repaired online, and yet the cluster replaced a pod.",
        recorded(_replaced),
        _KEEPS,
        "the pod of node 0 was replaced",
    ),
    _defect(
        "pod-restarted-in-repair",
        "The container of a pod was started again while the error was repaired.",
        _in_repair(event="pod.restarted", restarts=1, before=0),
        _KEEPS,
        "the pod of node 0 was started again in place",
        "0 → 1 restarts",
    ),
    _defect(
        "pod-ended-in-repair",
        "A pod ended while the error was repaired, and no other came.",
        _in_repair(phase="Failed", ready=False, exit=1, reason="Error"),
        _KEEPS,
        "the pod of node 0 ended",
    ),
    _defect(
        "pod-being-deleted-in-repair",
        "Another program deletes a pod while the error is repaired.",
        _in_repair(deleting=True),
        _KEEPS,
        "the pod of node 0 ended",
    ),
    _defect(
        "pods-followed-no-more",
        "The harness lost sight of the pods at some moment.",
        recorded(_unfollowed),
        _KEEPS,
        "the pods were no longer followed: the API server refuses the watch",
        verdict="unknown",
    ),
    _defect(
        "pods-not-followed-to-the-end",
        "The record of the pods ends before the run does.",
        recorded(lambda records: records.drop(records.all("kubernetes.followed"))),
        _KEEPS,
        "the history does not show that the pods were followed to the end",
        verdict="unknown",
    ),
    _defect(
        "pod-of-a-node-not-told",
        "The record does not show which pod was which node.",
        recorded(lambda records: records.drop(records.all("pod.state", node=KEPT))),
        _KEEPS,
        "the history does not show which pod was node 0",
        verdict="unknown",
    ),
    _defect(
        "record-of-the-cluster-missing",
        "No act of the cluster is recorded.",
        removed("history/kubernetes.jsonl"),
        _KEEPS,
        "the history does not show which pod was node 0",
        verdict="unknown",
    ),
    _defect(
        "nothing-told-of-pods",
        "Neither the ranks' pods nor the cluster's acts are recorded.",
        chain(
            removed("history/kubernetes.jsonl"),
            recorded(lambda records: records.drop(records.all("ranks.placed"))),
        ),
        "the cluster's record does not show which pod rank 2 was in",
        check="injection",
        verdict="unknown",
    ),
    _defect(
        "deleted-pod-not-named",
        "The evidence does not name the deleted pod.",
        _without("pod"),
        'the evidence for rank 2 lacks the field "pod"',
        check="injection",
        verdict="unknown",
    ),
    _defect(
        "end-of-pod-told-by-nobody",
        "The end of the deleted pod is not recorded.",
        _without("told_by"),
        'the evidence for rank 2 lacks the field "told_by"',
        check="injection",
        verdict="unknown",
    ),
    _defect(
        "pod-deleted-by-another-hand",
        "Nothing shows that this run deleted the pod.",
        _without("by"),
        'the evidence for rank 2 lacks the field "by"',
        check="injection",
        verdict="unknown",
    ),
    _defect(
        "pod-of-the-other-node-deleted",
        "The deleted pod is the other node's.",
        recorded(_of_the_other_node),
        "rank 2 was in pod",
        "and the evidence is of pod",
        check="injection",
        verdict="unknown",
    ),
    _defect(
        "deleted-pod-never-went",
        "By the cluster's own record the deleted pod still runs.",
        recorded(_never_went),
        "the cluster's record does not show that the pod of rank 2 went",
        check="injection",
        verdict="unknown",
    ),
    _defect(
        "pod-went-before-it-was-deleted",
        "The cluster had begun to delete the pod before this run ordered it.",
        recorded(_went_before),
        "the pod of rank 2 was going before this run had it deleted",
        check="injection",
        verdict="unknown",
    ),
)
