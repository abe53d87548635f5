"""A launcher that was killed is proven by its identification and the kernel's exit status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.checks.injection.beside_ranks import beside_doubts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import NONE
from chaos.plan.parts.fault import PlannedFault

FAULT = PlannedFault("it", "kill", (), {"elapsed": 1.0}, {}, None, 9, NONE, "launcher")


def event(name: str, mono: int, **data: Any) -> Event:
    return Event(name, mono, mono, "harness", mono, "train", None, 77, {"fault": "it", **data}, f"harness.jsonl:{mono}")


FOUND = event("launcher.found", 1, role="launcher", start_time=5)
ACT = event("fault.injecting", 10, kind="kill", signal=9, target_role="launcher", start_time=5)
EVIDENCE = {"rank": None, "role": "launcher", "pid": 77, "signal": 9, "barrier": None}
LANDING = event("fault.landed", 12, ranks=[], evidence=[EVIDENCE])
EXIT = event("launcher.exit", 20, role="launcher", signal=9, code=None)


def doubts(*events: Event, act: Event = ACT, landing: Event = LANDING) -> list[str]:
    return [text for text, _ in beside_doubts(History(tuple(events), ()), FAULT, landing, [act])]


def landed(**changed: Any) -> Event:
    return replace(LANDING, data={**LANDING.data, "evidence": [{**EVIDENCE, **changed}]})


def test_identified_and_killed_it_was_hit() -> None:
    assert doubts(FOUND, EXIT) == []


@pytest.mark.parametrize(
    ("events", "landing", "doubt"),
    [
        ([EXIT], LANDING, "process 77 was never identified as the launcher"),
        ([replace(FOUND, data={**FOUND.data, "role": "scheduler"}), EXIT], LANDING, "never identified as the launcher"),
        ([replace(FOUND, data={**FOUND.data, "start_time": 6}), EXIT], LANDING, "its start time differs"),
        (
            [
                replace(FOUND, data={**FOUND.data, "start_time": 6}),
                event("launcher.found", 2, role="x", start_time=5),
                EXIT,
            ],
            LANDING,
            "its start time differs",
        ),
        ([FOUND], LANDING, "no exit status of the launcher"),
        ([FOUND, replace(EXIT, mono=9)], LANDING, "had ended before the injection"),
        ([FOUND, replace(EXIT, data={**EXIT.data, "signal": 15})], LANDING, "ended by SIGTERM, not killed by SIGKILL"),
        ([FOUND, EXIT], landed(signal=15), "shows SIGTERM, not SIGKILL"),
        ([FOUND, EXIT], landed(pid=78), "the evidence is of process 78"),
        ([FOUND, EXIT], landed(rank=2), "a rank was hit, not the launcher"),
        ([FOUND, EXIT], replace(LANDING, mono=9), "before the injection"),
        ([FOUND, EXIT], replace(LANDING, data={"evidence": []}), "where one of each is expected"),
    ],
)
def test_anything_less_is_a_doubt(events: list[Event], landing: Event, doubt: str) -> None:
    assert any(doubt in text for text in doubts(*events, landing=landing))
