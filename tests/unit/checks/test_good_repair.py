"""A job that repaired itself online passes, and its recovery is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.checks.judge import Judgement
from chaos.checks.registry import BUILT_IN
from tests.kit.runs.good_run import GoodRun
from tests.kit.runs.repaired_run import PHASES_S, STRUCK, Strike, hcce_run, repaired_run, twice_run, uce_run
from tests.unit.checks.judging import Judge, said

GOOD: dict[str, Callable[[], GoodRun]] = {
    "uce": uce_run,
    "hcce": hcce_run,
    "twice": twice_run,
    "uce in both groups": lambda: repaired_run(Strike("uce", (0, 1))),
    "hcce on all ranks": lambda: repaired_run(Strike("hcce", (0, 1, 2, 3))),
    "uce in the first step": lambda: repaired_run(Strike("uce", (2,), 1)),
    "uce, then hcce": lambda: repaired_run(Strike("uce"), Strike("hcce", (2,), 8)),
}


def worse(judgement: Judgement) -> list[tuple[str, str, str, str]]:
    return [
        (finding.verdict, finding.check, finding.expected, finding.seen)
        for finding in judgement.findings
        if finding.verdict != "pass"
    ]


@pytest.mark.parametrize("name", GOOD)
def test_a_good_repair_passes_every_check(judged: Judge, name: str) -> None:
    judgement = judged(GOOD[name]())
    assert worse(judgement) == []
    assert judgement.verdict == "pass"
    assert {finding.check for finding in judgement.findings} == set(BUILT_IN)


@pytest.mark.parametrize(("run", "mechanism"), [(uce_run(), "UCE"), (hcce_run(), "HCCE")])
def test_phases_of_a_repair_add_up(judged: Judge, run: GoodRun, mechanism: str) -> None:
    recovery = judged(run).recovery
    assert recovery.mechanism == mechanism
    seconds = {phase.name: phase.seconds for phase in recovery.phases}
    assert seconds == pytest.approx({**PHASES_S, "first step": 0.24})
    assert recovery.total == sum(phase.nanoseconds or 0 for phase in recovery.phases)


def test_of_two_repairs_the_last_is_measured_and_the_report_says_so(judged: Judge) -> None:
    judgement = judged(twice_run())
    assert judgement.recovery.phases[0].where[0].startswith("history/harness.jsonl:")
    assert judgement.recovery.total == pytest.approx(0.84e9)
    assert said(judgement, "recovery", "pass", "repair of the last of 2 recoveries ≤ 1 s")


def test_the_end_of_stop_and_clean_stands_in_for_the_change_of_state(judged: Judge) -> None:
    run = uce_run()
    run.log = [(at, text) for at, text in run.log if text != "nextState: STATE_OP_REPAIR"]
    stop = judged(run).recovery.phases[1]
    assert stop.seconds == pytest.approx(PHASES_S["stop"] - 0.01)


def test_without_a_baseline_the_state_is_compared_with_the_ranks_own(judged: Judge) -> None:
    run = uce_run()
    run.baseline = None
    run.replan(baseline="none")
    judgement = judged(run)
    assert worse(judgement) == []
    assert said(judgement, "resume", "pass", "weights and optimizer state of the common step")


def test_a_rank_hit_after_its_update_needs_no_end_of_the_common_step(judged: Judge) -> None:
    run = uce_run()
    place = {"step": STRUCK - 1, "phase": "step.end"}
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, trigger=dict(place)),))
    for event in ("fault.landed", "fault.raised", "barrier.reached"):
        run.only(event).update(place)
    run.only("fault.landed")["evidence"][0]["barrier"] = dict(place)
    run.drop("step.end", rank=1, step=STRUCK - 1)
    run.drop("digest", rank=1, step=STRUCK - 1)
    file = run.files["train-rank_1-1001.jsonl"]
    file.remove(next(record for record in file if record["event"] == "step.begin" and record["step"] == STRUCK))
    assert worse(judged(run)) == []
