"""Part of check ``injection``: what proves a fault of a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status
from chaos.evidence.order import out_of_order
from chaos.evidence.struck import first_act, nodes_of
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
        answer = evidence.get("answer")
        if not isinstance(answer, dict) or answer.get("status") != "OK":
            said = answer.get("said") if isinstance(answer, dict) else "nothing that is recorded"
            yield f"npu-smi is not known to have reset the chip of rank {rank}: it said {said}", (landing.source,)
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
        if not isinstance(boot, dict) or not boot.get("before") or boot.get("after") in (None, "", boot["before"]):
            yield f"the node of rank {rank} is not known to have booted again", (landing.source,)
        else:
            yield from _in_another_boot(history, boot, landing, injection)
        yield from _not_ordered(history, fault, landing, injection)


def _in_another_boot(history: History, boot: dict[str, object], landing: Event, injection: Event) -> Iterator[Doubt]:
    """The boots that were asked for are held against those in which the processes of the job say that they ran."""
    starts = history.select("writer.start", writer="agent")
    victim = (injection.attempt, injection.rank, injection.pid)
    own = [one for one in starts if (one.attempt, one.rank, one.pid) == victim]
    before = boot["before"]
    if not any(one.data.get("boot") == before for one in own):
        seen = f"nothing shows that rank {injection.rank} was in the boot {before}, which is said to have ended"
        yield seen, (*(one.source for one in own), landing.source)
    # Held against the landing and not the order: a process may begin while its host goes down.
    later = [one for one in starts if one.data.get("boot") == before and landing.surely_before(one)]
    if later:
        whose = f"rank {later[0].rank} of attempt {later[0].attempt}"
        seen = f"{whose} began in the boot {before}, which is said to have ended"
        yield seen, (*(one.source for one in later), landing.source)


def _not_ordered(history: History, fault: PlannedFault, landing: Event, injection: Event) -> Iterator[Doubt]:
    """A host that boots again by itself is no fault of this run: its order must come between the act and the landing.

    All are the harness's own events. For several ranks of a node it is ordered once, at the first of them.
    """
    nodes, first = nodes_of(history, injection), first_act(history, fault, injection)
    orders = [one for one in history.select("host.reboot") if one.data.get("node") in nodes]
    if not any(first.mono <= one.mono <= landing.mono for one in orders):
        seen = f"nothing shows that this run ordered the reboot of the node of rank {injection.rank}"
        yield seen, (*(one.source for one in orders), landing.source)
