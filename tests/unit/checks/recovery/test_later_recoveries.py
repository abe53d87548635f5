"""What comes after a recovery is judged by itself: what the ranks did before the fault proves nothing for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chaos.plan.job_effect import NONE, PAUSE
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import SAVED, VICTIM, GoodRun, digests_of, good_run, hex_of, record, state_after
from tests.kit.runs.repaired_run import STRUCK, place_of, uce_run
from tests.kit.runs.replaced_run import replaced_run
from tests.kit.runs.rolled_back_run import rolled_back_run
from tests.unit.checks.judging import Judge, said

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.kit.runs.good_run import Record

HELD = STRUCK - 1
"""The step that all ranks hold after the repair."""


def ranks_of(run: GoodRun) -> Iterator[list[Record]]:
    yield from (records for name, records in run.files.items() if name.startswith("train"))


def without_baseline(run: GoodRun) -> GoodRun:
    run.baseline = None
    run.replan(baseline="none")
    return run


def forget_digests(run: GoodRun, first: int) -> None:
    for records in ranks_of(run):
        records[:] = [event for event in records if not (event["event"] == "digest" and event["step"] >= first)]


def keep_a_wrong_state(run: GoodRun, after: int) -> None:
    """From its second beginning, after step ``after``, every rank holds the same wrong weights and never moves them."""
    for records in ranks_of(run):
        again = False
        for event in records:
            again = again or (event["event"] == "train.begin" and event["initial_step"] == after)
            if again and event["event"] in ("initial", "digest"):
                group = event["rank"] % 2
                event["parameters"] = {name: hex_of("wrong", group, name) for name in event["parameters"]}


def test_weights_that_stand_still_after_a_repair_are_a_failure(judged: Judge) -> None:
    run = without_baseline(uce_run())
    for records in ranks_of(run):
        for event in records:
            if event["event"] == "digest" and event["step"] >= STRUCK:
                event["parameters"] = digests_of(state_after(event["rank"], HELD))
    assert judged(run).verdict == "fail"


@pytest.mark.parametrize("make", [uce_run, replaced_run])
def test_without_a_digest_after_the_recovery_nothing_passes(judged: Judge, make: Callable[[], GoodRun]) -> None:
    run = without_baseline(make())
    forget_digests(run, STRUCK)
    assert judged(run).verdict == "unknown"


def test_a_wrong_state_is_found_where_the_fault_free_run_is_no_measure(judged: Judge) -> None:
    """A spike that nothing took back, or asynchronous saving: then the ranks' own records are the measure."""
    rolled_back = rolled_back_run()
    rolled_back.replan(comparable=Comparable(5, 6, "asynchronous saving"))
    assert judged(rolled_back).verdict == "pass"
    keep_a_wrong_state(rolled_back, 6)
    assert judged(rolled_back).verdict == "fail"
    repaired = uce_run()
    repaired.replan(comparable=Comparable(3, 4, "a spike in step 4"))
    keep_a_wrong_state(repaired, HELD)
    assert judged(repaired).verdict == "fail"


def test_a_replayed_step_needs_a_digest_of_its_own(judged: Judge) -> None:
    run = rolled_back_run()
    for records in ranks_of(run):
        last = max(number for number, event in enumerate(records) if event["event"] == "digest" and event["step"] == 7)
        del records[last]
    judgement = judged(run)
    assert judgement.verdict == "unknown"
    assert said(judgement, "resume", "unknown", "has no digest of step 7, trained again")


def test_a_checkpoint_that_nothing_can_be_compared_with_is_unknown(judged: Judge) -> None:
    run = good_run()
    run.replan(comparable=Comparable(3, 4, "a spike in step 4"))
    for records in ranks_of(run):
        records[:] = [event for event in records if not (event["event"] == "digest" and event["step"] == SAVED)]
    assert judged(run).verdict == "unknown"


def test_a_pause_before_another_recovery_is_no_beginning_of_training(judged: Judge) -> None:
    run = uce_run()
    pause = PlannedFault("pause", "pause", (0, 1, 2, 3), {"step": 3}, {"seconds": 0.01}, None, 13, PAUSE)
    tsp = Recovery("TSP", ("pause",), None)
    run.replan(faults=(pause, *run.plan.faults), recoveries=(tsp, *run.plan.response.recoveries))
    for rank in range(4):
        act: Record = {"fault": "pause", "kind": "pause", "signal": None, "target_rank": rank, "start_time": 100 + rank}
        run.add("harness", record(10.25, "fault.injecting", **act, **place_of(rank)))
    judgement = judged(run)
    assert not [finding for finding in judgement.findings if finding.check == "resume" and finding.verdict != "pass"]


def test_a_harmless_fault_of_a_rank_does_not_change_how_it_must_end(judged: Judge) -> None:
    run = good_run()
    harmless = PlannedFault("term", "terminate", (VICTIM,), {"step": 3}, {}, None, 15, NONE)
    run.replan(faults=(*run.plan.faults, replace(harmless)))
    assert not [finding for finding in judged(run).findings if finding.check == "hygiene" and finding.verdict == "fail"]
