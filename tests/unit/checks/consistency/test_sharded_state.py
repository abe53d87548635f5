"""Ranks that hold shards of the state are never blamed for each other's, and a plan of other shards is no pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.runs.good_run import RANKS, GoodRun, hex_of, pid_of, record
from tests.unit.checks.judging import Judge, said, verdicts

SLOT, WEIGHT = "moments.layer1.weight", "layer1.weight"
SINGLE = tuple((rank,) for rank in range(RANKS))


def hold(run: GoodRun, holders: dict[int, list[int]] | None, *, own_slots: bool = False) -> None:
    """Let the ranks record that they hold shards."""
    for attempt in ("train", "resume"):
        for rank in range(RANKS):
            (begin,) = run.events("train.begin", attempt=attempt, rank=rank)
            place: dict[str, Any] = {"attempt": attempt, "rank": rank, "pid": pid_of(attempt, rank)}
            held: dict[str, Any] = {} if holders is None else {"holders": holders[rank]}
            event = record(0, "state.sharded", **place, optimizer=own_slots, **held)
            run.add(f"{attempt}-rank_{rank}", {**event, "mono": begin["mono"] + 1, "wall": begin["wall"]})


def differ(run: GoodRun, rank: int, *names: str) -> None:
    """Let a rank of the restarted job hold other values, before its first step and at every step."""
    for name in ("initial", "digest"):
        for event in run.events(name, attempt="resume", rank=rank):
            event["parameters"].update({value: hex_of(rank, value) for value in names})


def test_the_replicas_of_sharded_state_are_compared(run: GoodRun, judged: Judge) -> None:
    run.replan(shard="full")
    hold(run, {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]})
    assert verdicts(judged(run), "consistency") == {"pass"}
    differ(run, 2, WEIGHT)
    assert said(
        judged(run), "consistency", "fail", f"ranks 0 and 2 disagree before the first step of attempt resume: {WEIGHT}"
    )


def test_shards_that_the_scenario_does_not_name_are_unknown_with_the_key_to_write(run: GoodRun, judged: Judge) -> None:
    hold(run, {rank: [rank] for rank in range(RANKS)})
    differ(run, 2, WEIGHT, SLOT)
    judgement = judged(run)
    assert "fail" not in verdicts(judgement, "consistency"), "ranks with other shards are to blame for nothing"
    (train, resume) = said(judgement, "consistency", "unknown", "write cluster.parallel.shard: full")
    assert train.data.ranks == resume.data.ranks == (0, 1, 2, 3)
    assert "rank 0 alone holds its shards of the state" in train.seen


def test_shards_in_two_copies_are_told_with_the_copies(run: GoodRun, judged: Judge) -> None:
    run.replan(shard="full", replica_groups=SINGLE)
    hold(run, {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]})
    assert said(judged(run), "consistency", "unknown", "write cluster.parallel.copies: 2")


def test_another_mesh_than_the_plans_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.replan(shard="full")
    hold(run, {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]})
    assert said(judged(run), "consistency", "unknown", "the mesh of the job is another one")
    assert not said(judged(run), "consistency", "fail", "")


def test_moments_in_shards_are_not_compared_and_weights_are(run: GoodRun, judged: Judge) -> None:
    run.replan(shard="optimizer", replica_groups=((0, 2), (1, 3)))
    hold(run, None, own_slots=True)
    differ(run, 2, SLOT)
    assert verdicts(judged(run), "consistency") == {"pass"}
    differ(run, 3, WEIGHT)
    assert said(
        judged(run), "consistency", "fail", f"ranks 1 and 3 disagree before the first step of attempt resume: {WEIGHT}"
    )


def test_moments_in_shards_that_the_scenario_does_not_name_are_unknown(run: GoodRun, judged: Judge) -> None:
    hold(run, None, own_slots=True)
    differ(run, 2, SLOT)
    assert said(judged(run), "consistency", "unknown", "write cluster.parallel.shard: optimizer")
    assert not said(judged(run), "consistency", "fail", "")


@pytest.mark.parametrize("same", [True, False])
def test_whole_weights_are_no_shards(run: GoodRun, judged: Judge, *, same: bool) -> None:
    run.replan(shard="full", replica_groups=SINGLE)
    for event in run.events("digest"):
        event["parameters"][WEIGHT] = hex_of("same" if same else event["rank"])
        for name in [name for name in event["parameters"] if name not in (WEIGHT, SLOT)]:
            del event["parameters"][name]
    assert bool(said(judged(run), "consistency", "unknown", "hold the same weights")) is same


def test_shards_of_which_nobody_has_a_record_are_unknown(run: GoodRun, judged: Judge) -> None:
    run.replan(shard="full", replica_groups=SINGLE)
    for name in ("initial", "digest"):
        run.drop(name, attempt="resume")
    assert said(judged(run), "consistency", "unknown", "no rank has recorded in attempt resume what it holds")


def test_a_rank_that_does_not_say_who_holds_its_shards_is_unknown(run: GoodRun, judged: Judge) -> None:
    """Nobody is compared with such a rank, so nothing shows that its replicas hold the same."""
    run.replan(shard="full")
    hold(run, {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]})
    run.drop("state.sharded", attempt="train", rank=2)
    seen = "rank 2 has not recorded which ranks hold the same shards in attempt train"
    assert said(judged(run), "consistency", "unknown", seen)
