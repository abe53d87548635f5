"""Part of check ``injection``: what proves a fault of a whole node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone

from chaos.evidence.doubt import Doubt
from chaos.history.event import Event
from chaos.plan.model import PlannedFault
from chaos.plan.sides import is_cut_off

_WANTED: Mapping[str, tuple[str, Callable[[Mapping[str, object]], bool]]] = {
    "node-kill": (
        "ended by SIGKILL, and not for want of memory",
        lambda shown: (
            shown.get("status") == "exited" and shown.get("exit_code") == 137 and shown.get("oom_killed") is False
        ),
    ),
    "node-stop": (
        "ended by SIGKILL, not for want of memory, and when",
        lambda shown: (
            shown.get("status") == "exited"
            and shown.get("exit_code") == 137
            and shown.get("oom_killed") is False
            and _nanoseconds(shown.get("finished")) is not None
        ),
    ),
    "node-restart": (
        "running again since the launch",
        lambda shown: shown.get("status") == "running" and shown.get("restarted") is True,
    ),
    "node-oom": ("out of memory", lambda shown: all(_some(shown.get(key)) for key in ("oom_events", "oom_kills"))),
    "node-pause": ("paused", lambda shown: shown.get("status") == "paused"),
    "node-disconnect": (
        "running and off the network",
        lambda shown: shown.get("status") == "running" and shown.get("connected") is False,
    ),
}

SUSPEND, DISCONNECT = "suspend", "node-disconnect"

SILENCED = frozenset({SUSPEND, "node-pause", DISCONNECT})
"""Kinds after which a rank is not heard of until the teardown."""

_SIGSTOP = 19


def is_silenced(fault: PlannedFault) -> bool:
    """Whether its ranks are lost to the job while they live."""
    return fault.kind in SILENCED or is_cut_off(fault)


ENDS_LATER = frozenset({"node-stop"})
"""Kinds whose node goes on for a while after the act."""


_GRACE = 2.0
"""Seconds that a node has where the scenario says nothing (chaos/faults/nodes/node_stop.py)."""

_APART = 0.05
"""Seconds by which the platform's time of day, which tells the end, and the history's own clock may be apart."""


def ended_at(landing: Event) -> int | None:
    """When the node of such a fault ended, on the clock of the history (ns); None where the landing does not tell.

    The platform tells the time of day. It is placed by that of the landing, which was seen within moments of it.
    """
    return _end(landing, [one for one in landing.data.get("evidence") or [] if isinstance(one, Mapping)])


def _end(landing: Event, evidence: Sequence[Mapping[str, object]]) -> int | None:
    told = [one.get("node") for one in evidence]
    times = [_nanoseconds(one.get("finished")) for one in told if isinstance(one, Mapping)]
    known = [one for one in times if one is not None]
    return landing.mono - (landing.wall - max(known)) if known and len(known) == len(told) else None


def node_doubts(fault: PlannedFault, landing: Event, evidence: Mapping[str, object]) -> Iterator[Doubt]:
    """What speaks against a fault of the node that a rank is on. Nothing for faults of another kind."""
    if fault.kind not in _WANTED:
        return
    words, holds = _WANTED[fault.kind]
    shown = evidence.get("node")
    if not isinstance(shown, Mapping) or not holds(shown):
        yield f"the node of rank {evidence.get('rank')} is not shown to be {words}", (landing.source,)
    elif fault.kind == "node-oom" and (kills := int(shown["oom_kills"])) < len(fault.ranks):
        ended = f"{kills} process{'es' if kills > 1 else ''} of the node for want of memory"
        yield f"the kernel has ended {ended}, and the fault was to take {len(fault.ranks)} ranks", (landing.source,)


def early_doubts(
    fault: PlannedFault, landing: Event, evidence: Sequence[Mapping[str, object]], injections: Sequence[Event]
) -> Iterator[Doubt]:
    """Whether a node that was told to stop has ended before its time was over, so by something else.

    One order stops all ranks of a node; that it was given to the next of them is recorded when the node has ended.
    """
    if fault.kind != "node-stop":
        return
    grace = float(fault.parameters.get("grace", _GRACE))
    nodes: dict[object, list[Mapping[str, object]]] = {}
    for one in evidence:
        shown = one.get("node")
        nodes.setdefault(shown.get("container") if isinstance(shown, Mapping) else None, []).append(one)
    for of_node in nodes.values():
        ranks = {one.get("rank") for one in of_node}
        orders = sorted((one for one in injections if one.rank in ranks), key=lambda one: one.mono)
        end = _end(landing, of_node)
        if orders and end is not None and (took := (end - orders[0].mono) / 1e9) < grace - _APART:
            text = f"the node ended {took:.3f} s after the order to stop, and had {grace:g} s: something else ended it"
            yield text, (landing.source, orders[0].source)


def is_shown(kind: str, evidence: Mapping[str, object]) -> bool:
    """Whether this evidence shows that a fault of a kind of ``SILENCED`` holds."""
    if kind == SUSPEND:
        return evidence.get("signal") == _SIGSTOP
    shown = evidence.get("node")
    return isinstance(shown, Mapping) and _WANTED[kind][1](shown)


def _some(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _nanoseconds(told: object) -> int | None:
    """A time in the words of RFC 3339, up to nanoseconds, in UTC; None where it is none."""
    if not isinstance(told, str) or not told.endswith("Z"):
        return None
    whole, _, rest = told.removesuffix("Z").partition(".")
    try:
        seconds = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()
        return int(seconds) * 10**9 + int(rest.ljust(9, "0")[:9] or 0)
    except ValueError:
        return None
