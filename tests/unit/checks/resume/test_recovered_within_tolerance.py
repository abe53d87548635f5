"""At any tolerance the state after a recovery is that of the common step bit for bit: both are of one run."""

from __future__ import annotations

from tests.kit.runs.good_run import State
from tests.kit.runs.tolerant_run import noisy_state, tolerant_repair
from tests.unit.checks.judging import Judge, not_passed, said

RESTORED = "each rank goes on with the weights and optimizer state of the common step"


def a_step_back(rank: int, step: int, state: State) -> None:
    """The state of the step before, and the counter of this one."""
    older = noisy_state(rank, step - 1, 0)
    state.update({name: array for name, array in older.items() if name != "global_step"})


def test_noise_between_two_runs_is_no_difference_within_one(judged: Judge) -> None:
    judgement = judged(tolerant_repair())
    assert not_passed(judgement) == []
    assert said(judgement, "resume", "pass", RESTORED)


def test_a_recovery_of_another_step_fails_although_it_is_within_the_tolerance(judged: Judge) -> None:
    judgement = judged(tolerant_repair(a_step_back))
    assert said(judgement, "resume", "fail", f"{RESTORED} | after recovery 1 rank 0 held another state")
    assert {finding.check for finding in judgement.findings if finding.verdict != "pass"} == {"resume"}


def test_without_a_record_of_the_common_step_the_fault_free_run_decides(judged: Judge) -> None:
    run = tolerant_repair(a_step_back)
    run.drop("digest", step=5)
    assert said(judged(run), "resume", "pass", RESTORED)
