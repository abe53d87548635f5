"""A link that went down is proven by the rank's own record, at the planned barrier, and by nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.evidence.injection.triggers import demands
from chaos.faults.device_errors.proof_link import severed_doubts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import COMMUNICATION
from chaos.plan.parts.fault import PlannedFault

TRIGGER = {"step": 7, "phase": "allreduce.enter"}
FAULT = PlannedFault("link", "link", (2,), TRIGGER, {}, None, 9, COMMUNICATION)


def event(name: str, mono: int, **data: Any) -> Event:
    return Event(name, mono, mono, "rank_2", mono, "train", 2, 77, {"fault": "link", **data}, f"rank_2.jsonl:{mono}")


INJECTING = event("fault.injecting", 10)
DOWN = event("fault.device", 11, action="link.down", **TRIGGER)
LANDING = event("fault.landed", 12)


def doubts(*events: Event, fault: PlannedFault = FAULT, landing: Event = LANDING) -> list[str]:
    history = History(tuple(events), ())
    return [text for text, _ in severed_doubts(history, fault, demands(TRIGGER), landing, INJECTING)]


def test_the_record_at_the_barrier_proves_it() -> None:
    assert doubts(DOWN) == []


@pytest.mark.parametrize(
    ("events", "doubt"),
    [
        ([], "rank 2's own history does not say that its link went down"),
        ([replace(DOWN, pid=78)], "does not say that its link went down"),
        ([replace(DOWN, data={**DOWN.data, "action": "other"})], "does not say that its link went down"),
        ([replace(DOWN, data={**DOWN.data, "step": 8})], "the planned fault was not injected"),
        ([replace(DOWN, mono=9)], "was down before the injection"),
        ([DOWN, event("step.end", 13, step=7)], "ended a step behind its broken link"),
    ],
)
def test_anything_less_is_a_doubt(events: list[Event], doubt: str) -> None:
    assert any(doubt in text for text in doubts(*events))


def test_a_landing_before_the_record_is_a_doubt() -> None:
    assert "the landing is recorded before" in doubts(DOWN, landing=replace(LANDING, mono=10))[0]


def test_faults_of_other_kinds_are_no_concern() -> None:
    assert doubts(fault=replace(FAULT, kind="kill")) == []
