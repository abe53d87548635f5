"""Ranks that are proven to go on from different steps fail, also where no replica contradicts them."""

from __future__ import annotations

from tests.kit.runs.good_run import SAVED, GoodRun, Saved, digests_of, state_after
from tests.kit.runs.restored_run import HOLDERS, restored_run
from tests.unit.checks.judging import Judge, said

OLDER = SAVED - 2
TOGETHER = "all ranks go on from one step"


def loading_older(rank: int) -> GoodRun:
    """A rank loads its older file in place of the newest one."""
    run = restored_run()
    path = f"checkpoints/rank_{HOLDERS[rank][0]}/sliced-1_{OLDER}.ckpt"
    run.saved[100] = Saved(f"job/{path}", state_after(HOLDERS[rank][0], OLDER), {})
    for event in ("load.begin", "load.end"):
        run.only(event, attempt="resume", rank=rank)["path"] = path
    return run


def test_ranks_with_the_states_of_different_checkpoints_fail(judged: Judge) -> None:
    run = loading_older(1)
    run.only("initial", attempt="resume", rank=1)["parameters"] = digests_of(state_after(1, OLDER))
    (finding,) = said(judged(run), "resume", "fail", TOGETHER)
    assert f"rank 1 held the checkpoint of step {OLDER}, rank 0 that of step {SAVED}" in finding.seen
    assert finding.data.ranks == (0, 1)


def test_where_no_replica_contradicts_them_they_fail_as_well(judged: Judge) -> None:
    """The ranks of one replica group go on from the older step together."""
    run = loading_older(1)
    for rank in (1, 3):
        run.only("initial", attempt="resume", rank=rank)["parameters"] = digests_of(state_after(rank, OLDER))
    for event in ("load.begin", "load.end"):
        run.only(event, attempt="resume", rank=3)["path"] = run.only(event, attempt="resume", rank=1)["path"]
    judgement = judged(run)
    assert said(judgement, "resume", "fail", TOGETHER) and not said(judgement, "consistency", "fail", "")


def test_a_rank_that_has_read_an_older_checkpoint_and_holds_another_state_proves_nothing(judged: Judge) -> None:
    """Another rank may have sent it the state."""
    judgement = judged(loading_older(1))
    assert not said(judgement, "resume", "fail", TOGETHER)
    assert said(judgement, "resume", "unknown", "do not hold one and the same step")


def test_without_the_record_of_a_state_nothing_is_proven(judged: Judge) -> None:
    run = loading_older(1)
    run.drop("initial", attempt="resume", rank=1)
    judgement = judged(run)
    assert not said(judgement, "resume", "fail", TOGETHER) and judgement.verdict != "pass"


def test_ranks_that_begin_with_different_steps_fail(judged: Judge) -> None:
    run = loading_older(1)
    first = run.only("step.begin", attempt="resume", rank=1, step=SAVED + 1)
    run.add("resume-rank_1", {**first, "step": OLDER + 1, "mono": first["mono"] - 1000})
    (finding,) = said(judged(run), "resume", "fail", TOGETHER)
    assert f"rank 1 began with step {OLDER + 1}, rank 0 with step {SAVED + 1}" in finding.seen
