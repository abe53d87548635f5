"""A phase stands beside the same stretch of the fault-free run, and beside nothing that it cannot be compared with."""

from __future__ import annotations

import pytest

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.report.page.fault_free_start import fault_free_seconds

TIMES = {"agent.start": 2, "group.ready": 9, "train.begin": 10, "step.begin": 10, "step.end": 12}


def baseline(*without: str) -> History:
    """Two ranks; rank 1 is half a second later."""
    events = [Event("attempt.start", 0, 0, "harness", 0, "train", None, 1, {}, "harness.jsonl:1")]
    for rank in (0, 1):
        for name, seconds in TIMES.items():
            mono = int((seconds + rank / 2) * 1e9)
            events.append(Event(name, mono, mono, "agent", 1, "train", rank, 100 + rank, {"step": 1}, "x.jsonl:1"))
    return History(tuple(sorted((event for event in events if event.event not in without), key=lambda e: e.mono)))


def test_a_start_by_the_harness_is_compared_from_its_launch_on() -> None:
    assert fault_free_seconds(baseline(), ("detection", "relaunch", "compile", "first step")) == pytest.approx(
        {"relaunch": 10.5, "compile": 0.0, "first step": 2.0}
    )


def test_a_restart_of_the_ranks_alone_is_compared_from_their_processes_on() -> None:
    assert fault_free_seconds(baseline(), ("detection", "relaunch", "import", "load", "first step")) == pytest.approx(
        {"import": 7.0, "load": 1.0, "first step": 2.0}
    )
    assert fault_free_seconds(baseline("group.ready"), ("import",)) == pytest.approx({"first step": 2.0})
    assert fault_free_seconds(None, ("import",)) == {}
