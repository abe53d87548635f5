"""The timeline shows each process of each rank, what it did, and how it ended."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.kit.good_run import FAULT, GROUPS, LAST, PHASES_S, RANKS, SAVED, VICTIM, GoodRun
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
    twins = {phase.name: phase.twin for phase in page(run).recoveries[0].phases if phase.twin is not None}
    assert set(twins) == {"relaunch", "compile", "first step"}
    assert all(seconds >= 0 for seconds in twins.values())


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
