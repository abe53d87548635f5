"""The fate of a job's pods in the time of each recovery: replaced, started again in place, or untouched.

A process that is recovered inside its container leaves the pod as it was; a pod with another UID is a rescheduling.
Facts only: ``chaos/faults/cluster/rule.py`` judges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from chaos.evidence.recovery_windows import Ambiguous, Window, chains, recovery_windows
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.history.writer import POD_WRITER
from chaos.plan.model import Plan

What = Literal["replaced", "restarted", "ended", "untouched", "unknown"]

_ENDED = ("Failed", "Succeeded")


@dataclass(frozen=True)
class Pod:
    """A pod: its name, its identity, and its node in the cluster, None before it has one."""

    name: str
    uid: str
    host: str | None

    def __str__(self) -> str:
        return f"{self.name} ({self.uid}) on {self.host or 'no node yet'}"


@dataclass(frozen=True)
class PodFate:
    """The fate of the pod of a node in recovery ``recovery`` (from 1), which ``mechanisms`` carry out.

    ``before`` is the pod at the fault, ``after`` the last one that came in its place. ``ended``: it ended, or is being
    deleted, and no other has come. ``why`` is the basis of ``what``.
    """

    recovery: int
    mechanisms: tuple[str, ...]
    node: int
    what: What
    why: str
    before: Pod | None = None
    after: Pod | None = None
    where: tuple[str, ...] = ()


def in_pods(history: History) -> bool:
    """Return whether the job ran in pods: before each launch the harness records the pod of each rank."""
    return bool(history.select("ranks.placed") or history.select(writer=POD_WRITER))


def pod_fates(plan: Plan, history: History) -> list[PodFate]:
    """Return the fate of every node's pod in every recovery of the plan; nothing for a job outside pods."""
    if not in_pods(history):
        return []
    nodes = range(plan.layout.nodes)
    try:
        windows = recovery_windows(plan, history)
    except Ambiguous as reason:
        return [
            PodFate(number, tuple(recovery.mechanism for recovery in chain), node, "unknown", str(reason))
            for number, chain in enumerate(chains(plan), 1)
            for node in nodes
        ]
    return [_fate(history, window, node) for window in windows for node in nodes]


def _fate(history: History, window: Window, node: int) -> PodFate:
    mechanisms = tuple(recovery.mechanism for recovery in window.all)

    def fate(what: What, why: str, *where: Event, before: Pod | None = None, after: Pod | None = None) -> PodFate:
        return PodFate(
            window.number, mechanisms, node, what, why, before, after, tuple(event.source for event in where)
        )

    node_events = history.select(writer=POD_WRITER, node=node)
    placed = placed_at(node_events, window.begin)
    replaced = window.of(event for event in node_events if event.event == "pod.rescheduled")
    if replaced:
        first = replaced[0].data.get("before")
        before, after = _pod(first if isinstance(first, dict) else {}), _pod(replaced[-1].data)
        return fate("replaced", f"{before} → {after}", *replaced, before=before, after=after)
    if placed is None:
        return fate("unknown", f"the history does not show which pod was node {node}")
    pod = _pod(placed.data)
    changes = [event for event in window.of(node_events) if event.data.get("uid") == pod.uid]
    restarted = [event for event in changes if event.event == "pod.restarted"]
    if restarted:
        times = f"{restarted[0].data.get('before')} → {restarted[-1].data.get('restarts')} restarts"
        return fate("restarted", f"{pod}: {times}", *restarted, before=pod, after=pod)
    ends = list(ends_of(changes))
    if ends:
        return fate("ended", f"{pod}, and no other came", ends[-1], before=pod)
    lost = history.first("kubernetes.unfollowed", what="pods")
    if lost is not None:
        return fate("unknown", f"the pods were no longer followed: {lost.data.get('why')}", lost, before=pod)
    if not any(event.mono >= window.begin for event in history.select("kubernetes.followed")):
        return fate("unknown", "the history does not show that the pods were followed to the end", before=pod)
    return fate("untouched", str(pod), placed, before=pod, after=pod)


def placed_at(node_events: list[Event], mono: int) -> Event | None:
    """Return the last record before a time about a node's pod, out of ``own``, the node's events.

    None without a record.
    """
    before = [event for event in node_events if event.mono < mono]
    came = [event for event in before if event.event == "pod.rescheduled"]
    return came[-1] if came else next((event for event in before if event.event == "pod.state"), None)


def ends_of(changes: Iterable[Event]) -> Iterator[Event]:
    """Yield the changes of one pod by which it has ended, or is being deleted."""
    for event in changes:
        if event.event == "pod.gone" or event.data.get("deleting") is True or event.data.get("phase") in _ENDED:
            yield event


def _pod(fields: dict[str, Any]) -> Pod:
    host = fields.get("host")
    return Pod(str(fields.get("pod")), str(fields.get("uid")), None if host is None else str(host))
