"""Part of check ``injection``: what proves a fault of a whole node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from chaos.checks.raised import Doubt
from chaos.history.event import Event
from chaos.plan.model import PlannedFault

_WANTED: Mapping[str, tuple[str, Callable[[Mapping[str, object]], bool]]] = {
    "node-kill": (
        "ended by SIGKILL, and not for want of memory",
        lambda shown: (
            shown.get("status") == "exited" and shown.get("exit_code") == 137 and shown.get("oom_killed") is False
        ),
    ),
    "node-pause": ("paused", lambda shown: shown.get("status") == "paused"),
    "node-disconnect": (
        "running and off the network",
        lambda shown: shown.get("status") == "running" and shown.get("connected") is False,
    ),
}

PROOFS: Mapping[str, str] = {
    "node-kill": "the platform's word that the node was killed, and not for want of memory; exit status",
    "node-pause": "the platform's word that the node is paused",
    "node-disconnect": "the platform's word that the node is off the network",
}
"""What the evidence of a kind is, in words."""


SILENCED = frozenset({"suspend", "node-pause", "node-disconnect"})
"""Kinds after which a rank is not heard of until the teardown."""


def node_doubts(fault: PlannedFault, landing: Event, evidence: Mapping[str, object]) -> Iterator[Doubt]:
    """What speaks against a fault of the node that a rank is on. Nothing for faults of another kind."""
    if fault.kind not in _WANTED:
        return
    words, holds = _WANTED[fault.kind]
    shown = evidence.get("node")
    if not isinstance(shown, Mapping) or not holds(shown):
        yield f"the node of rank {evidence.get('rank')} is not shown to be {words}", (landing.source,)
