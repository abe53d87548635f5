"""Of several files that a rank has read, the one counts whose content it holds when it begins to train."""

from __future__ import annotations

import pytest

from tests.kit.runs.good_run import RANKS, SAVED, GoodRun, Saved, State, digests_of, good_run, record, state_after
from tests.kit.runs.restored_run import HOLDERS, restored_run
from tests.unit.checks.judging import Judge, not_passed, said

OLDER = SAVED - 2
UNKNOWN = "the step to resume from is known"


def path_of(rank: int, step: int) -> str:
    return f"checkpoints/rank_{rank}/sliced-1_{step}.ckpt"


def look_into(run: GoodRun, rank: int, path: str, at: float) -> None:
    """The rank of the job started again reads a file, besides the one that it goes on from."""
    place = {"attempt": "resume", "rank": rank, "pid": run.only("train.begin", attempt="resume", rank=rank)["pid"]}
    run.add(f"resume-rank_{rank}", record(at, "load.begin", path=path, **place))
    run.add(f"resume-rank_{rank}", record(at + 0.01, "load.end", path=path, parameters=6, **place))


def goes_on_with(run: GoodRun, rank: int, state: State) -> None:
    run.only("initial", attempt="resume", rank=rank)["parameters"] = digests_of(state)


def keep(run: GoodRun, rank: int, step: int) -> None:
    run.saved[100 * step + rank] = Saved(f"job/{path_of(rank, step)}", state_after(rank, step), {})


@pytest.fixture(params=[19.5, 20.6], ids=["before", "behind"])
def run(request: pytest.FixtureRequest) -> GoodRun:
    """Every rank looks into an older file too, before or behind the one that it goes on from."""
    run = restored_run()
    for rank in range(RANKS):
        keep(run, HOLDERS[rank][0], OLDER)
        look_into(run, rank, path_of(HOLDERS[rank][0], OLDER), request.param)
    return run


def test_a_rank_that_looks_into_several_files_and_goes_on_from_the_newest_passes(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert not_passed(judgement) == []
    assert said(judgement, "resume", "pass", "| 4 ranks compared by digest")


def test_ranks_that_read_the_newest_file_and_go_on_from_an_older_one_fail(run: GoodRun, judged: Judge) -> None:
    for rank in range(RANKS):
        goes_on_with(run, rank, state_after(rank, OLDER))
    judgement = judged(run)
    assert said(judgement, "resume", "fail", f"step {OLDER} was saved, so the next is step {OLDER + 1}")


def test_a_state_of_two_files_fails_against_the_one_that_it_is_most_of(run: GoodRun, judged: Judge) -> None:
    moments = {name: array for name, array in state_after(0, OLDER).items() if name.startswith("moments")}
    goes_on_with(run, 0, {**state_after(0, SAVED), **moments})
    judgement = judged(run)
    assert said(judgement, "resume", "fail", "2 of 6 parameters of rank 0 are not the file's: moments.layer1.bias")
    assert judgement.verdict == "fail"


def test_a_state_that_is_of_none_of_the_files_is_unknown_with_each_load(run: GoodRun, judged: Judge) -> None:
    """What all files share, the learning rate, decides nothing."""
    held = state_after(0, SAVED)
    goes_on_with(run, 0, {name: array if name == "learning_rate" else array + 100 for name, array in held.items()})
    judgement = judged(run)
    for step in (OLDER, SAVED):
        assert said(judgement, "resume", "unknown", f"rank 0 loaded {path_of(0, step)} (step {step})")
    assert judgement.verdict != "pass"


def test_without_the_state_before_the_first_step_it_is_unknown_with_each_load(run: GoodRun, judged: Judge) -> None:
    run.drop("initial", attempt="resume", rank=3)
    (finding,) = said(judged(run), "resume", "unknown", UNKNOWN)
    assert {f"rank 3 loaded {path_of(3, step)} (step {step})" in finding.seen for step in (OLDER, SAVED)} == {True}
    assert "rank 1 " not in finding.seen


def test_a_file_that_is_gone_since_decides_nothing_where_another_one_is_the_whole_state(
    run: GoodRun, judged: Judge
) -> None:
    del run.saved[100 * OLDER]
    assert said(judged(run), "resume", "pass", "| 4 ranks compared by digest")
    run.only("initial", attempt="resume", rank=0)["parameters"]["layer1.bias"] = "0" * 32
    assert said(judged(run), "resume", "unknown", f"rank 0 loaded {path_of(0, OLDER)} (no known step)")


def test_a_file_of_another_run_is_never_passed_over(run: GoodRun, judged: Judge) -> None:
    look_into(run, 1, f"/elsewhere/r0/job/{path_of(1, SAVED)}", 19.8)
    judgement = judged(run)
    assert judgement.verdict != "pass"
    assert not said(judgement, "resume", "pass", "each rank loads the file of its own replica group")


def test_a_rank_that_looks_into_a_replicas_file_too_passes(judged: Judge) -> None:
    run = restored_run()
    keep(run, 2, OLDER)
    look_into(run, 0, path_of(2, OLDER), 19.5)
    assert said(judged(run), "resume", "pass", "| 4 ranks compared by digest")


def test_behind_an_end_of_life_checkpoint_an_older_file_may_be_looked_into(judged: Judge) -> None:
    run = good_run()
    keep(run, 0, OLDER)
    look_into(run, 0, path_of(0, OLDER), 19.5)
    assert said(judged(run), "resume", "pass", "| 4 ranks compared by digest")
    goes_on_with(run, 0, state_after(0, OLDER))
    assert said(judged(run), "resume", "fail", f"rank 0 loaded job/{path_of(0, OLDER)}, which is not an end-of-life")
