"""The trace is what Perfetto opens: a process a rank, its steps, and an arrow from a fault to its detection."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chaos.checks.judge import judge
from chaos.report.analyze import result_of
from chaos.report.page.data import page_of
from chaos.report.page.model import PageData, Span
from chaos.report.trace import FAULTS, SDK, TRAINING, trace_of
from tests.kit.runs.good_run import LAST, PHASES_S, RANKS, VICTIM, good_run


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> PageData:
    directory = good_run().write(tmp_path_factory.mktemp("runs") / "run")
    judgement = judge(directory)
    return page_of(directory, judgement, result_of(directory, judgement))


@pytest.fixture
def events(page: PageData) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(trace_of(page))["traceEvents"]
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
    assert end["ts"] - start["ts"] == pytest.approx(PHASES_S["detection"] * 1e6, abs=3)
    assert [name for name, begin, until in slices(events, end) if begin <= end["ts"] < until] == ["detection"]
    assert slices(events, start), "an arrow begins in a slice"


def slices(events: list[dict[str, Any]], place: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Return the slices of the thread of an event: name, begin and end."""
    thread = place["pid"], place["tid"]
    return [
        (event["name"], event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["ph"] == "X" and (event["pid"], event["tid"]) == thread
    ]


def test_a_fault_that_nobody_is_known_to_have_noticed_has_no_arrow(page: PageData) -> None:
    planned = tuple(replace(fault, noticed=None) for fault in page.timeline.planned)
    trace = json.loads(trace_of(replace(page, timeline=replace(page.timeline, planned=planned))))
    assert not [event for event in trace["traceEvents"] if event["ph"] in ("s", "f")]


def test_the_states_of_the_sdks_controller_are_a_thread(events: list[dict[str, Any]]) -> None:
    controller = next(
        event for event in events if event["name"] == "thread_name" and event["args"]["name"] == "SDK controller"
    )
    assert [name for name, _, _ in slices(events, controller)] == ["NORMAL", "ABNORMAL", "DUMP", "EXIT"]


def test_handlers_have_their_names_on_the_thread_of_the_sdk(events: list[dict[str, Any]]) -> None:
    names = [name for name, _, _ in slices(events, {"pid": 0, "tid": SDK})]
    assert names == ["save_ckpt", "exit"]


def test_slices_of_a_thread_nest_and_what_does_not_is_shown_beside_it(page: PageData) -> None:
    first = page.timeline.rows[0]
    process = first.processes[0]
    begin = process.steps[2][2] + 0.01
    save = Span("save", "save", begin, begin + 0.1, "in the background")
    spoilt = replace(first, processes=(replace(process, spans=(*process.spans, save)), *first.processes[1:]))
    rows = (spoilt, *page.timeline.rows[1:])
    events = json.loads(trace_of(replace(page, timeline=replace(page.timeline, rows=rows))))["traceEvents"]
    beside = [(event["ph"], event["name"]) for event in events if event["ph"] in ("b", "e")]
    assert beside == [("b", "save"), ("e", "save")]
    for pid, tid in {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}:
        ends: list[int] = []
        for _, since, until in slices(events, {"pid": pid, "tid": tid}):
            while ends and ends[-1] <= since:
                ends.pop()
            assert not ends or until <= ends[-1], (pid, tid, since)
            ends.append(until)


def test_every_event_has_what_the_form_demands(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert {"name", "ph", "pid"} <= set(event)
        if event["ph"] != "M":
            assert isinstance(event["ts"], int) and event["tid"] in (TRAINING, SDK, FAULTS)
        if event["ph"] == "X":
            assert event["dur"] >= 0
