"""Part of check ``injection``: what proves a condition that was laid on ranks, and that it lasted as planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chaos.evidence.doubt import Doubt
from chaos.evidence.told import Told, number, some
from chaos.faults.network.proof import (
    all_lost,
    all_ways_lost,
    delayed,
    names_gone,
    network_rate,
    partly_lost,
    port_alone_lost,
    port_lost,
    resolvers_cut,
)
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import PlannedFault
from chaos.plan.sides import is_cut_off

_NEAR_SECONDS = 1.0
_PERIOD = 100_000
"""Microseconds in which a container gets its quota of processor time."""
_LEAST_QUOTA = 1000
_PROCESSES = 2
"""How many processes a load has where the scenario says nothing (chaos/faults/resources/cpu_load.py)."""


def _at_least(key: str, wanted: str, unit: str) -> Callable[[Told, Told], str | None]:
    """The evidence has a number under ``key`` that reaches the parameter ``wanted``."""

    def judge(parameters: Told, told: Told) -> str | None:
        seen, limit = number(told, key), number(parameters, wanted)
        if seen is None or limit is None or seen < limit:
            return f"{key} is {told.get(key)}, and {wanted} {parameters.get(wanted)} {unit}"
        return None

    return judge


def _at_most(key: str, wanted: str, default: float) -> Callable[[Told, Told], str | None]:
    """The evidence has a number under ``key`` that is within the parameter ``wanted``."""

    def judge(parameters: Told, told: Told) -> str | None:
        seen, limit = number(told, key), number({wanted: default, **parameters}, wanted)
        if seen is None or limit is None or seen > limit:
            return f"{key} is {told.get(key)}, and {wanted} {limit:g}"
        return None

    return judge


def _is_true(key: str) -> Callable[[Told, Told], str | None]:
    def judge(parameters: Told, told: Told) -> str | None:
        del parameters
        return None if told.get(key) is True else f"{key} is {told.get(key)}"

    return judge


def _is_text(key: str) -> Callable[[Told, Told], str | None]:
    def judge(parameters: Told, told: Told) -> str | None:
        del parameters
        return None if isinstance(told.get(key), str) and told[key] else f"{key} is {told.get(key)}"

    return judge


MESH = ("pod-dns-gone", "pod-io-delay", "pod-network-delay", "pod-network-loss", "pod-network-partition")
"""Kinds that Chaos Mesh makes."""


def _is_injected(parameters: Told, told: Told) -> str | None:
    """The object, the pod that was meant by its UID, and the records of that pod."""
    del parameters
    pod, records = told.get("pod"), told.get("injected")
    if not (isinstance(pod, Mapping) and pod.get("name") and pod.get("uid")) or not told.get("uid"):
        return f"pod is {pod}, of object {told.get('uid')}"
    if not isinstance(records, list) or not records:
        return f"the records that it was made in are {records}"
    other = [one for one in records if str(one).split("/")[1:2] != [pod["name"]]]
    return f"it was made in {other}, and not in pod {pod['name']}" if other else None


def _is_off(parameters: Told, told: Told) -> str | None:
    seen, wanted = number(told, "seen"), number(parameters, "offset")
    if seen is None or wanted is None or abs(seen - wanted) > _NEAR_SECONDS:
        return f"its clock was off by {told.get('seen')} s, not by {parameters.get('offset')}"
    return None


def _loads_cores(parameters: Told, told: Told) -> str | None:
    """As many processes as were to be, on cores of the rank, each of which has got processor time."""
    wanted = number({"processes": _PROCESSES, **parameters}, "processes")
    if number(told, "beside") != wanted or not told.get("cores"):
        return f"{told.get('beside')} processes of the load run on cores {told.get('cores')}, and {wanted} were to"
    return some("consumed")(parameters, told)


def _is_stopped(parameters: Told, told: Told) -> str | None:
    del parameters
    return None if told.get("state") == "stopped" else f"its state is {told.get('state')}"


def _node_quota(parameters: Told, told: Told) -> str | None:
    quota, cores = number(told, "quota"), number(parameters, "cores")
    if quota is None or cores is None or not 0 < quota <= max(_LEAST_QUOTA, cores * _PERIOD):
        return f"its quota is {told.get('quota')} us in each {_PERIOD}, and it was to get {cores} cores"
    return some("throttled")(parameters, told)


def _has_limit(parameters: Told, told: Told) -> str | None:
    del parameters
    return None if number(told, "limit") is not None else f"limit is {told.get('limit')}"


SHOWN: Mapping[str, tuple[Callable[[Told, Told], str | None], str]] = {
    "slow-storage": (_at_least("opened_after", "delay", "s"), "how long the kernel took to open a file there"),
    "clock-skew": (_is_off, "how far the rank itself has seen its clock to be off"),
    "cpu-load": (_loads_cores, "the processor time that the load has got on the rank's cores"),
    "cpu-quota": (some("throttled"), "the kernel's count of the times that it let the rank wait"),
    "node-cpu-quota": (_node_quota, "the quota that the node has, and how often the kernel let it wait"),
    "dns-gone": (names_gone, "a look-up on the rank's node that fails, and the address that is still reached"),
    "fd-limit": (_at_most("left", "spare", 32), "the limit of open files that the kernel has for the process"),
    "freeze": (_is_stopped, "the kernel's word that the process is stopped"),
    "memory-load": (_at_least("resident", "megabytes", "MiB"), "what the kernel says that the load holds"),
    "network-delay": (delayed, "how long echoes from the rank's node took"),
    "network-loss": (partly_lost, "how many echoes from the rank's node were lost"),
    "network-rate": (network_rate, "the rate that the kernel holds to, and what it has sent by it"),
    "partition": (all_lost, "what the kernel does with packets between the nodes"),
    "port-blocked": (port_alone_lost, "what the kernel does with packets to the port, and that it does not answer"),
    **dict.fromkeys(MESH, (_is_injected, "Chaos Mesh's word, in the status of its object")),
    "node-cordon": (_is_true("unschedulable"), "the node's own object"),
    "public-fault": (_is_text("fault id"), "ClusterD's own list of public faults"),
    "storage-stall": (_is_true("frozen"), "the kernel's word that the file system is frozen"),
}
"""By kind: what the evidence must show, and what it is in words."""

SKEW = "clock-skew"

_STILL: Mapping[str, Callable[[Told, Told], str | None]] = {
    "dns-gone": resolvers_cut,
    "partition": all_ways_lost,
    "port-blocked": port_lost,
    "fd-limit": _has_limit,
    "network-delay": some("passed"),
    "network-loss": some("passed"),
}
"""What must show just before the end, for kinds that are looked at in another way then."""

_AS_BEFORE: Mapping[str, tuple[str, ...]] = {
    "cpu-quota": ("group",),
    "dns-gone": ("cut",),
    "fd-limit": ("limit",),
    "network-delay": ("by",),
    "network-loss": ("by",),
    "network-rate": ("kbit",),
    "port-blocked": ("port",),
    **dict.fromkeys(MESH, ("uid", "pod")),
    "node-cordon": ("host",),
    "public-fault": ("host", "fault id"),
    "slow-storage": ("mount",),
    "storage-stall": ("mount",),
}
"""What must be the same as when it landed."""


_OF_RANK = (SKEW,)
"""Kinds that end with the rank's own process, and by nothing else."""

_MESH_TAKEN = "somebody else may have deleted its object, or Chaos Mesh given up"
_NETWORK_TAKEN = "the relay or the rule between the nodes may have been taken away"
_TAKEN: Mapping[str, str] = {
    "memory-load": "the process that holds it is the first that the kernel ends for want of memory",
    "cpu-load": "the processes that made it may have been ended",
    "slow-storage": "the process that delays it may have been ended, or its mount taken away",
    "fd-limit": "the rank may have raised it itself",
    "cpu-quota": "somebody may have moved the rank out of its group",
    "dns-gone": "somebody may have changed the node's routes",
    "node-cpu-quota": "somebody may have changed the node's limits",
    **dict.fromkeys(("network-delay", "network-loss", "network-rate"), _NETWORK_TAKEN),
    **dict.fromkeys(MESH, _MESH_TAKEN),
    "node-cordon": "somebody else may have uncordoned the node",
    "public-fault": "somebody else may have told ClusterD that it has recovered",
}
"""Who may have taken a condition away that was to last until the launch has ended."""

_LONGEST_SILENCE = {"partition": 3.0, "port-blocked": 3.0, "freeze": 4.0}
"""Seconds from the act until it was put back: a slow harness or machine can make more of it than the scenario says.

With the stand-in's timings ``fast`` a rank is lost after 5 s of silence. TCP sends again 0.2, 0.6, 1.4, 3.0 and 6.2 s
after what was lost, so a cut of more than 3 s is a silence of more than 6.
"""

_LOOK_SECONDS = 3.0
"""How long before the last that its rank recorded a condition must have been seen. The harness looks all the time."""


def condition_doubts(
    history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object]
) -> Iterator[Doubt]:
    """What speaks against such a fault at one rank. Nothing for faults of another kind."""
    if fault.kind not in SHOWN:
        return
    judge, _ = SHOWN[fault.kind]
    if (doubt := judge(fault.parameters, evidence)) is not None:
        yield f"the evidence for rank {evidence.get('rank')} does not show it: {doubt}", (landing.source,)
    seconds = number(fault.parameters, "seconds")
    endings = history.select("fault.ending", fault=fault.id, attempt=landing.attempt)
    if seconds is None:
        if fault.kind not in _OF_RANK:
            yield from _to_the_end(history, fault, landing, evidence, endings)
    elif not endings:
        yield f"nothing tells when it ended, which was to be after {seconds:g} s", (landing.source,)
    elif (lasted := (endings[0].mono - landing.mono) / 1e9) < seconds:
        seen = f"it was to last {seconds:g} s, and ended with the launch after {lasted:.3f} s"
        yield seen, (landing.source, endings[0].source)
    elif (vanished := _vanished(fault, evidence, endings[0])) is not None:
        seen = f"nothing shows that rank {evidence.get('rank')} was under it up to its end: {vanished}"
        yield seen, (landing.source, endings[0].source)
    yield from _too_long(history, fault, landing)


def _too_long(history: History, fault: PlannedFault, landing: Event) -> Iterator[Doubt]:
    """What speaks against it that a silence nobody has to answer was put back before ranks may count as lost."""
    longest = None if is_cut_off(fault) else _LONGEST_SILENCE.get(fault.kind)
    made = history.select("fault.injecting", fault=fault.id, attempt=landing.attempt)
    healed = history.select("fault.healed", fault=fault.id)
    if longest is None or not made or not healed:
        return
    lasted = (healed[0].mono - made[0].mono) / 1e9
    if lasted > longest:
        seen = f"it was put back {lasted:.3f} s after it was made; after {longest:g} s ranks may count as lost"
        yield seen, (made[0].source, healed[0].source)


def _to_the_end(
    history: History, fault: PlannedFault, landing: Event, landed: Told, endings: list[Event]
) -> Iterator[Doubt]:
    """What speaks against it that a condition without an end of its own was there until the launch had ended."""
    rank = landed.get("rank")
    if not endings:
        yield f"nobody looked whether rank {rank} was still under it when the launch ended", (landing.source,)
        return
    ending = endings[0]
    if (vanished := _vanished(fault, landed, ending)) is not None:
        taken = f"; {_TAKEN[fault.kind]}" if fault.kind in _TAKEN else ""
        seen = f"nothing shows that rank {rank} was under it until the launch ended: {vanished}{taken}"
        yield seen, (landing.source, ending.source)
        return
    own = _of_rank(landed, ending)
    if own is None or own.get("ended") is not True:
        return
    looked = number(own, "looked")
    until = _last_of(history, fault, landing, own, looked)
    if looked is None or until is None or until - looked > _LOOK_SECONDS * 1e9:
        late = "" if looked is None or until is None else f": the last look was {(until - looked) / 1e9:.3f} s before"
        yield f"nothing shows that rank {rank} was under it until its process ended{late}", (ending.source,)
    again = [
        one
        for one in history.select("agent.start", attempt=landing.attempt, rank=rank)
        if one.pid != own.get("pid") and landing.maybe_before(one)
    ]
    if again:
        seen = f"rank {rank} was started again as process {again[0].pid}, which was not under it: give it seconds"
        yield seen, (again[0].source, landing.source)


def _last_of(history: History, fault: PlannedFault, landing: Event, own: Told, looked: float | None) -> int | None:
    """When the process last recorded anything, or another fault was made that hits it (ns); None: nothing tells."""
    rank, pid = own.get("rank"), own.get("pid")
    recorded = history.select(attempt=landing.attempt, rank=rank, pid=pid, writer="agent")
    made = history.select("fault.injecting", attempt=landing.attempt, rank=rank, pid=pid)
    others = [one for one in made if one.data.get("fault") != fault.id and one.mono >= (looked or 0)]
    last = max((one.mono for one in recorded), default=None)
    return None if last is None else min([last, *(one.mono for one in others)])


def _of_rank(landed: Told, ending: Event) -> dict[str, Any] | None:
    listed = ending.data.get("evidence")
    told = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return next((one for one in told if one.get("rank") == landed.get("rank")), None)


def _vanished(fault: PlannedFault, landed: Told, ending: Event) -> str | None:
    """Why the evidence that was asked for just before the end does not show the condition; None where it does."""
    own = _of_rank(landed, ending)
    if own is None:
        return "it was not looked at then"
    if own.get("pid") != landed.get("pid"):
        return f"process {own.get('pid')} was looked at, and it landed on process {landed.get('pid')}"
    judge = _STILL.get(fault.kind, SHOWN[fault.kind][0])
    if (doubt := judge(fault.parameters, own)) is not None:
        return doubt
    other = next((key for key in _AS_BEFORE.get(fault.kind, ()) if own.get(key) != landed.get(key)), None)
    return None if other is None else f"its {other} is {own.get(other)}, and was {landed.get(other)}"
