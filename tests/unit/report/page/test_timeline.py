"""The timeline shows each process of each rank, what it did, and how it ended."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kit.runs.good_run import FAULT, GROUPS, LAST, PHASES_S, RANKS, SAVED, VICTIM, GoodRun, Record, pid_of, record
from tests.unit.report.page.conftest import PageOf


def test_every_rank_has_a_row_with_its_processes_in_order(run: GoodRun, page: PageOf) -> None:
    rows = page(run).timeline.rows
    assert [row.rank for row in rows] == list(range(RANKS))
    assert [row.group for row in rows] == [0, 1, 0, 1]
    for row in rows:
        assert [process.attempt for process in row.processes] == ["train", "resume"]
        first, second = row.processes
        assert first.begin < first.end <= second.begin < second.end


def test_a_killed_rank_ends_by_its_signal_after_its_last_step(run: GoodRun, page: PageOf) -> None:
    killed = page(run).timeline.rows[VICTIM].processes[0]
    assert killed.exit == "ended by SIGKILL"
    assert [first for first, _, _, _ in killed.steps] == list(range(1, SAVED + 1))
    assert next(mark.text for mark in killed.marks if mark.kind == "exit").startswith("ended by SIGKILL (history/")


def test_the_rank_that_saves_shows_its_save(run: GoodRun, page: PageOf) -> None:
    rows = page(run).timeline.rows
    savers = {row.rank for row in rows for process in row.processes for span in process.spans if span.kind == "save"}
    assert savers == {group[0] for group in GROUPS}


def test_a_step_without_an_end_lasts_to_the_processs_last_record(run: GoodRun, page: PageOf) -> None:
    blocked = page(run).timeline.rows[0].processes[0]
    first, last, begin, end = blocked.steps[-1]
    assert first == last == SAVED + 1
    assert begin <= end <= blocked.end


def test_a_planned_fault_is_shown_beside_its_landing(run: GoodRun, page: PageOf) -> None:
    (fault,) = page(run).timeline.planned
    assert (fault.kind, fault.ranks, fault.step) == ("kill", (VICTIM,), SAVED)
    assert fault.seen is not None and "landed in step 5" in fault.seen
    assert fault.t is not None


def test_a_fault_that_never_landed_is_shown_as_planned_alone(run: GoodRun, page: PageOf) -> None:
    run.drop("fault.landed", fault=FAULT)
    run.drop("fault.injecting", fault=FAULT)
    (fault,) = page(run).timeline.planned
    assert (fault.t, fault.seen) == (None, None)


def test_the_phases_of_the_recovery_follow_each_other(run: GoodRun, page: PageOf) -> None:
    data = page(run)
    bands = data.timeline.phases
    assert {band.name: band.end - band.begin for band in bands} == pytest.approx(PHASES_S, abs=2e-6)
    assert all(before.end == pytest.approx(after.begin) for before, after in pairwise(bands))
    (waterfall,) = data.recoveries
    assert waterfall.mechanism == "TTP"
    assert waterfall.total == pytest.approx(sum(PHASES_S.values()))


def test_the_phases_of_a_start_stand_beside_those_of_the_fault_free_run(run: GoodRun, page: PageOf) -> None:
    phases = page(run).recoveries[0].phases
    seconds_of = {phase.name: phase.fault_free for phase in phases if phase.fault_free is not None}
    assert set(seconds_of) == {"relaunch", "compile", "first step"}
    assert all(seconds >= 0 for seconds in seconds_of.values())


def test_the_last_step_is_the_plans(run: GoodRun, page: PageOf) -> None:
    resumed = page(run).timeline.rows[0].processes[1]
    assert resumed.steps[-1][1] == LAST


@pytest.mark.parametrize("step", [True, "5", 2.5, None, 10**400])
def test_a_step_that_is_no_number_is_no_step(run: GoodRun, page: PageOf, step: object) -> None:
    run.only("step.end", rank=0, step=3)["step"] = step
    page(run)


def test_a_rank_that_trains_on_is_no_longer_held(run: GoodRun, page: PageOf) -> None:
    (victim,) = (events for name, events in run.files.items() if name.startswith(f"train-rank_{VICTIM}"))
    held = next(event for event in victim if event["event"] == "barrier.reached")
    step = next(event for event in victim if event["event"] == "step.begin")
    victim.append({**step, "mono": held["mono"] + 10**8, "wall": held["wall"] + 10**8, "step": SAVED + 1})
    (span,) = (span for span in page(run).timeline.rows[VICTIM].processes[0].spans if span.kind == "held")
    assert span.end - span.begin == pytest.approx(0.1)


def test_a_rank_that_has_its_error_is_no_longer_held(run: GoodRun, page: PageOf) -> None:
    (victim,) = (events for name, events in run.files.items() if name.startswith(f"train-rank_{VICTIM}"))
    held = next(event for event in victim if event["event"] == "barrier.reached")
    late = {"mono": held["mono"] + 2 * 10**7, "wall": held["wall"] + 2 * 10**7}
    victim.append({**held, **late, "event": "error.reported"})
    (span,) = (span for span in page(run).timeline.rows[VICTIM].processes[0].spans if span.kind == "held")
    assert span.end - span.begin == pytest.approx(0.02)


def test_what_the_sdk_does_to_a_rank_has_its_kind_and_its_name(run: GoodRun, page: PageOf) -> None:
    place: Record = {"attempt": "train", "rank": 3, "pid": pid_of("train", 3)}
    for at, name in ((11.11, "stop"), (11.13, "clean"), (11.15, "repair")):
        run.add("train-rank_3", record(at, "handler.enter", name=name, **place))
        run.add("train-rank_3", record(at + 0.01, "handler.exit", name=name, ok=True, **place))
    spans = page(run).timeline.rows[3].processes[0].spans
    named = [(span.kind, span.name) for span in spans if span.text.startswith("handler.enter")]
    assert named == [("stop", "stop"), ("stop", "clean"), ("repair", "repair"), ("handler", "exit")]


def test_a_rank_that_passes_the_point_of_a_pause_is_not_shown_as_paused(run: GoodRun, page: PageOf) -> None:
    place: Record = {"attempt": "train", "rank": 3, "pid": pid_of("train", 3)}
    for at, seconds in ((10.061, 2e-5), (10.161, 0.03)):
        run.add("train-rank_3", record(at, "pause.enter", step=1, **place))
        run.add("train-rank_3", record(at + seconds, "pause.exit", step=1, **place))
    (span,) = (span for span in page(run).timeline.rows[3].processes[0].spans if span.kind == "pause")
    assert (span.begin, span.end) == pytest.approx((10.061, 10.091))


@pytest.mark.parametrize(("seconds", "begin"), [(0.5, 8.4), (99, 1.9), ("x", None), (-1.0, None), (float("nan"), None)])
def test_a_compilation_ends_where_it_is_recorded(
    run: GoodRun, page: PageOf, seconds: object, begin: float | None
) -> None:
    place: Record = {"attempt": "train", "rank": 3, "pid": pid_of("train", 3)}
    run.add("train-rank_3", record(9.0, "graph.compiled", function="construct", seconds=seconds, **place))
    spans = [span for span in page(run).timeline.rows[3].processes[0].spans if span.kind == "compile"]
    assert [(span.begin, span.end) for span in spans] == ([] if begin is None else [pytest.approx((begin, 8.9))])


def test_the_states_of_the_sdks_controller_follow_each_other(run: GoodRun, page: PageOf) -> None:
    states = page(run).timeline.states
    assert [state.name for state in states] == ["NORMAL", "ABNORMAL", "DUMP", "EXIT"]
    assert [state.begin for state in states] == pytest.approx([2.1, 11.0, 11.05, 11.5], abs=1e-5)
    assert all(before.end == after.begin for before, after in pairwise(states))
    assert states[1].text.startswith("ABNORMAL (logs/train/ttp/ttp_log.log.1000:")
    assert states[-1].end == pytest.approx(11.73), "the last exit of a rank in the launch"


def test_states_whose_time_is_not_known_are_left_out(run: GoodRun, page: PageOf) -> None:
    run.log = [(2.2, "nextState: STATE_OP_NORMAL"), (99_999.0, "nextState: STATE_OP_EXIT")]
    assert page(run).timeline.states == ()


def test_a_fault_is_noticed_where_its_detection_ends(run: GoodRun, page: PageOf) -> None:
    timeline = page(run).timeline
    (fault,) = timeline.planned
    assert fault.t is not None and fault.noticed is not None
    assert fault.noticed - fault.t == pytest.approx(PHASES_S["detection"], abs=2e-6)
    assert fault.seen is not None and fault.seen.endswith("; noticed 0.600 s after the act")
    (mark,) = (mark for mark in timeline.harness if mark.kind == "detection")
    assert (mark.t, mark.text) == (fault.noticed, f"noticed: {FAULT}")


def test_a_launch_is_told_by_its_name(run: GoodRun, page: PageOf) -> None:
    texts = [mark.text.split(",")[0] for mark in page(run).timeline.harness]
    launches = [text for text in texts if text.startswith("attempt.start")]
    assert launches == ["attempt.start: attempt train", "attempt.start: attempt resume"]
