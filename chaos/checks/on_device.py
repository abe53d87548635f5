"""Part of check ``injection``: what proves a fault of a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.checks.facts import exit_status
from chaos.checks.in_order import out_of_order
from chaos.checks.raised import Doubt
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import PlannedFault

LINK, RESET, REBOOT = "npu-link-down", "device-reset", "node-reboot"

PROOFS: Mapping[str, str] = {
    LINK: "the network's health before and after, by hccn_tool",
    RESET: "npu-smi's answer and the exit status of the process",
    REBOOT: "the order, and another boot of the node",
}
"""What the evidence of a kind is, in words."""

ON_CARDS = frozenset({LINK, RESET})
"""Kinds that disturb a card, which the cluster may quarantine for it."""

TAKE_RANKS = frozenset({RESET, REBOOT})
"""Kinds that end a rank's process in a way of which only the failure is known."""


def device_doubts(
    history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object], injection: Event
) -> Iterator[Doubt]:
    """What speaks against a fault of a device at one rank. Nothing for faults of another kind."""
    if fault.kind not in PROOFS:
        return
    rank = evidence.get("rank")
    if fault.kind in (LINK, RESET) and not isinstance(evidence.get("device"), dict):
        yield f"which device rank {rank} trained on is not in the evidence", (landing.source,)
    if fault.kind == LINK:
        wanted = {"before": "Success", "after": "Fault"}
        if evidence.get("net_health") != wanted:
            seen = evidence.get("net_health")
            yield f"the network's health at rank {rank} is {seen}, not {wanted}", (landing.source,)
    elif fault.kind == RESET:
        exits = history.select("rank.exit", attempt=injection.attempt, rank=injection.rank)
        own = [one for one in exits if one.pid == injection.pid]
        if not own:
            yield f"rank {rank} has no exit status, so its chip may not have been reset", (landing.source,)
        for one in own:
            if one.data.get("signal") is None and one.data.get("code") in (0, None):
                yield f"rank {rank} {exit_status(one)}, as if its chip had not been reset", (one.source,)
            elif (told := out_of_order(injection, one)) is not None:
                yield f"rank {rank} had ended before the reset{told}", (one.source, injection.source)
    else:
        boot = evidence.get("boot")
        known = isinstance(boot, dict) and boot.get("before") and boot.get("after")
        if not known or (isinstance(boot, dict) and boot["before"] == boot["after"]):
            yield f"the node of rank {rank} is not known to have booted again", (landing.source,)
        yield from _not_ordered(history, fault, landing, injection)


def _not_ordered(history: History, fault: PlannedFault, landing: Event, injection: Event) -> Iterator[Doubt]:
    """A host that boots again by itself is no fault of this run: its order must come between the act and the landing.

    All are the harness's own events. For several ranks of a node it is ordered once, at the first of them.
    """
    found = history.select("rank.found", attempt=injection.attempt, rank=injection.rank)
    nodes = {one.data.get("node") for one in found if one.pid == injection.pid} - {None}
    begun = history.select("fault.injecting", fault=fault.id, attempt=injection.attempt) or [injection]
    first = min(begun, key=lambda one: one.mono)
    orders = [one for one in history.select("host.reboot") if one.data.get("node") in nodes]
    if not any(first.mono <= one.mono <= landing.mono for one in orders):
        seen = f"nothing shows that this run ordered the reboot of the node of rank {injection.rank}"
        yield seen, (*(one.source for one in orders), landing.source)
