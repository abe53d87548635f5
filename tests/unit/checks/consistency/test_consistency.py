"""Check ``consistency``: ranks of one replica group hold the same weights and optimizer state, step by step."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun, hex_of
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "consistency") == {"pass"}


def test_a_replica_with_another_weight_fails(run: GoodRun, judged: Judge) -> None:
    run.only("digest", attempt="resume", rank=3, step=9)["parameters"]["layer1.weight"] = hex_of("other")
    assert said(
        judged(run), "consistency", "fail", "ranks 1 and 3 disagree after step 9 of attempt resume: layer1.weight"
    )


def test_without_the_digests_of_a_launch_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("digest", attempt="train")
    assert said(judged(run), "consistency", "unknown", "no digests to compare ranks 0,2 by in attempt train")
