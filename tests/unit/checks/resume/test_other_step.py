"""A rank that counts one step and holds the weights of another fails, by the run's own record of each step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kit.runs.good_run import GROUPS, RANKS, SAVED, GoodRun, State, digests_of, state_after
from tests.kit.runs.restored_run import HOLDERS, restored_run
from tests.unit.checks.judging import Judge, not_passed, said

OLDER = SAVED - 2
COUNTED = "each rank goes on with the weights of the step that it counts"


def older_under_a_newer_counter(rank: int) -> State:
    return {**state_after(rank, OLDER), "global_step": np.array([SAVED], np.int32)}


def restored_with(run: GoodRun, *ranks: int) -> GoodRun:
    """These ranks saved, loaded and hold an older state, and count the newer step."""
    for rank in ranks:
        for holder in HOLDERS[rank]:
            run.saved[holder].state = older_under_a_newer_counter(holder)
        initial = run.only("initial", attempt="resume", rank=rank)
        initial["parameters"] = digests_of(older_under_a_newer_counter(rank))
    return run


def test_an_older_state_under_a_newer_counter_fails_with_both_steps_rank_and_file(judged: Judge) -> None:
    found = said(judged(restored_with(restored_run(), *range(RANKS))), "resume", "fail", COUNTED)
    assert [each.data.ranks for each in found] == [(0,), (1,), (2,), (3,)]
    assert f"holds the weights of step {OLDER}, its counter says {SAVED}; it loaded checkpoints/rank_" in found[0].seen
    assert found[0].data.step == SAVED and found[0].data.file is not None


def test_a_file_that_cannot_be_read_changes_nothing(judged: Judge) -> None:
    run = restored_with(restored_run(), 1)
    run.saved[1].keep = 20
    judgement = judged(run)
    assert said(judgement, "resume", "unknown", "cannot be read")
    assert [each.data.ranks for each in said(judgement, "resume", "fail", COUNTED)] == [(1,)]


def test_the_state_of_the_counted_step_is_right(judged: Judge) -> None:
    assert not_passed(judged(restored_run())) == []


def test_steps_in_which_nothing_changes_blame_nobody(judged: Judge) -> None:
    run = restored_run()
    still = {group: digests_of(state_after(group[0], OLDER)) for group in GROUPS}
    for event in run.events("digest", attempt="train"):
        if event["step"] >= OLDER:
            event["parameters"] = next(state for group, state in still.items() if event["rank"] in group)
    assert not said(judged(restored_with(run, *range(RANKS))), "resume", "fail", COUNTED)


@pytest.mark.parametrize("step", [OLDER, SAVED])
def test_without_the_record_of_one_of_the_steps_nothing_is_proven(judged: Judge, step: int) -> None:
    run = restored_with(restored_run(), 1)
    run.drop("digest", attempt="train", rank=1, step=step)
    assert not said(judged(run), "resume", "fail", COUNTED)


def test_a_state_of_no_step_is_not_taken_for_that_of_another(judged: Judge) -> None:
    run = restored_run()
    state = {**state_after(1, OLDER), "layer1.bias": np.full(3, 7, np.float32)}
    run.only("initial", attempt="resume", rank=1)["parameters"] = digests_of(state)
    judgement = judged(run)
    assert not said(judgement, "resume", "fail", COUNTED) and said(judgement, "resume", "fail", "are not the file's")


def test_a_rank_that_counts_as_its_weights_say_is_not_blamed_for_them(judged: Judge) -> None:
    run = restored_with(restored_run(), 1)
    run.only("train.begin", attempt="resume", rank=1)["initial_step"] = OLDER
    first = run.only("step.begin", attempt="resume", rank=1, step=SAVED + 1)
    run.add("resume-rank_1", {**first, "step": OLDER + 1, "mono": first["mono"] - 1000})
    assert not said(judged(run), "resume", "fail", COUNTED)
