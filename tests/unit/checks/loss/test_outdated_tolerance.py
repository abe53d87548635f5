"""A tolerance that was measured with another job tells nothing: what needs it is unknown, and nothing else is."""

from __future__ import annotations

import pytest

from chaos.evidence.finding import worst
from tests.kit.runs.good_run import GoodRun, good_run
from tests.kit.runs.repaired_run import STRUCK
from tests.kit.runs.tolerant_run import tolerant_repair, tolerant_run
from tests.unit.checks.judging import Judge, not_passed, said
from tests.unit.checks.loss.test_by_log import lines_of, logs_of_a_good_run, silenced

CHANGED = ("the script", "mindspore from 2.7.0 to 2.8.0")
WHY = (
    "the tolerance was measured with another job (changed since: the script, mindspore from 2.7.0 to 2.8.0); "
    "run chaos calibrate again"
)


def outdated(run: GoodRun) -> GoodRun:
    run.replan(outdated_by=CHANGED)
    return run


def test_noise_is_unknown_and_the_reason_says_what_has_changed(judged: Judge) -> None:
    judgement = judged(outdated(tolerant_run()))
    assert {verdict for verdict, *_ in not_passed(judgement)} == {"unknown"}
    assert worst([finding.verdict for finding in judgement.findings]) == "unknown"
    for expected in ("every loss equals", "weights and optimizer state equal", "the mean loss from step 6 on"):
        assert any(WHY in found.seen for found in said(judgement, "loss", "unknown", expected)), expected
    assert WHY in said(judgement, "checkpoint", "unknown", "parameters of rank 0 differ")[0].seen
    assert said(judgement, "resume", "pass", "") and not said(judgement, "resume", "unknown", "")


def test_a_drift_beyond_the_limits_is_unknown_too(judged: Judge) -> None:
    run = tolerant_run(lambda rank, step, state: state["layer1.weight"].fill(7))
    assert not said(judged(outdated(run)), "loss", "fail", "")


def test_equal_values_need_no_tolerance(judged: Judge) -> None:
    run = good_run()
    run.replan(loss_tolerance=0.01, mean_tolerance=0.005, false_alarm=0.01)
    assert not_passed(judged(outdated(run))) == []


def test_values_without_a_tolerance_fail_as_before(judged: Judge) -> None:
    run = tolerant_run(lambda rank, step, state: state.update(global_step=state["global_step"] - 1))
    assert said(judged(outdated(run)), "loss", "fail", "global_step must be equal bit for bit")


def test_the_state_after_a_repair_is_unknown_where_only_the_fault_free_run_shows_it(judged: Judge) -> None:
    run = tolerant_repair()
    for records in run.files.values():  # without the record of the common step by the run itself
        records[:] = [event for event in records if event["event"] != "digest" or event["step"] != STRUCK - 1]
    found = said(judged(outdated(run)), "resume", "unknown", "each rank goes on with the weights")
    assert found and all(WHY in each.seen for each in found)


@pytest.mark.parametrize("equal", [True, False])
def test_printed_losses_that_differ_are_unknown(judged: Judge, *, equal: bool) -> None:
    logs = logs_of_a_good_run()
    if not equal:
        logs["resume", 1] = [text.replace("loss: 0.", "loss: 9.") for text in lines_of(1, 6, 12)]
    run = silenced(good_run(), logs)
    run.replan(loss_tolerance=0.01)
    judgement = judged(outdated(run))
    doubtful = [found for found in said(judgement, "loss", "unknown", "in the ranks' logs") if WHY in found.seen]
    assert bool(doubtful) is not equal and not said(judgement, "loss", "fail", "in the ranks' logs")
