"""Proofs of faults of a device."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case, Proof


def _which_device(case: Case) -> Iterator[Doubt]:
    if not isinstance(case.evidence.get("device"), dict):
        rank = case.evidence.get("rank")
        yield f"which device rank {rank} trained on is not in the evidence", (case.landing.source,)


def link_doubts(case: Case) -> Iterator[Doubt]:
    """Yield every reason to doubt that the network link of one rank's card went down."""
    yield from _which_device(case)
    expected, health = {"before": "Success", "after": "Fault"}, case.evidence.get("net_health")
    if health != expected:
        text = f"the network's health at rank {case.evidence.get('rank')} is {health}, not {expected}"
        yield text, (case.landing.source,)


def reset_doubts(case: Case) -> Iterator[Doubt]:
    """Yield every reason to doubt that the chip of one rank was reset."""
    yield from _which_device(case)
    rank, answer, injection = case.evidence.get("rank"), case.evidence.get("answer"), case.injection
    if not isinstance(answer, dict) or answer.get("status") != "OK":
        words = answer.get("said") if isinstance(answer, dict) else "nothing that is recorded"
        yield f"npu-smi is not known to have reset the chip of rank {rank}: it said {words}", (case.landing.source,)
    exits = case.history.select("rank.exit", attempt=injection.attempt, rank=injection.rank)
    ends = [event for event in exits if event.pid == injection.pid]
    if not ends:
        yield f"rank {rank} has no exit status, so its chip may not have been reset", (case.landing.source,)
    for event in ends:
        if event.data.get("signal") is None and event.data.get("code") in (0, None):
            yield f"rank {rank} {exit_status(event)}, as if its chip had not been reset", (event.source,)
        elif (order := out_of_order(injection, event)) is not None:
            yield f"rank {rank} had ended before the reset{order}", (event.source, injection.source)


LINK_DOWN = Proof("the network's health before and after, by hccn_tool", ("device", "net_health"), link_doubts)
DEVICE_RESET = Proof("npu-smi's answer and the exit status of the process", ("device", "answer"), reset_doubts)
