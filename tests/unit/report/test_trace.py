"""The trace is what Perfetto opens: a process a rank, its steps, and an arrow from a fault to its detection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.judge import judge
from chaos.report.analyze import result_of
from chaos.report.page.data import page_of
from chaos.report.trace import FAULTS, SDK, TRAINING, trace_of
from tests.kit.good_run import LAST, PHASES_S, RANKS, VICTIM, good_run


@pytest.fixture
def events(tmp_path: Path) -> list[dict[str, Any]]:
    directory = good_run().write(tmp_path)
    judgement = judge(directory)
    trace = json.loads(trace_of(page_of(directory, judgement, result_of(directory, judgement))))
    found: list[dict[str, Any]] = trace["traceEvents"]
    return found


def test_every_rank_is_a_process_with_three_threads(events: list[dict[str, Any]]) -> None:
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert [names[rank].split(" (")[0] for rank in range(RANKS)] == [f"rank {rank}" for rank in range(RANKS)]
    threads = {event["args"]["name"] for event in events if event["name"] == "thread_name" and event["pid"] == 0}
    assert threads == {"training", "SDK", "faults"}


def test_every_step_lasts_on_the_training_thread(events: list[dict[str, Any]]) -> None:
    steps = {event["name"] for event in events if event["ph"] == "X" and event["tid"] == TRAINING and event["pid"] == 0}
    assert {f"step {step}" for step in range(1, LAST + 1)} <= steps


def test_an_arrow_leads_from_the_fault_to_its_detection(events: list[dict[str, Any]]) -> None:
    start, end = (event for event in events if event["ph"] in ("s", "f"))
    assert (start["ph"], start["pid"], start["tid"], end["ph"]) == ("s", VICTIM, FAULTS, "f")
    assert start["id"] == end["id"]
    assert end["ts"] - start["ts"] == pytest.approx(PHASES_S["detection"] * 1e6, abs=2)


def test_every_event_has_what_the_form_demands(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert {"name", "ph", "pid"} <= set(event)
        if event["ph"] != "M":
            assert isinstance(event["ts"], int) and event["tid"] in (TRAINING, SDK, FAULTS)
        if event["ph"] == "X":
            assert event["dur"] >= 0
