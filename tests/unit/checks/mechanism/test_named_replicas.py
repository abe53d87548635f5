"""The replicas that MindSpore gave the SDK, by its own line, are held against the replica groups of the plan."""

from __future__ import annotations

import pytest

from chaos.checks.consistency.replicas import EXPECTED
from tests.kit.runs.good_run import GoodRun, good_run
from tests.unit.checks.judging import Judge, not_passed, said

ME = "[INFO] ME(99:140535643880320,MainProcess):2026-11-21-01:28:56.320.000 [mindspore/train/callback/x.py:320] "


def with_replicas(given: dict[int, tuple[int, ...]], attempt: str = "train") -> GoodRun:
    """A good run whose ranks 0 to 3 have the replica groups (0, 2) and (1, 3), and in whose logs these are given."""
    run = good_run()
    assert run.plan.layout.replica_groups == ((0, 2), (1, 3))
    for rank, ranks in given.items():
        run.others[f"logs/{attempt}/worker_{rank}.log"] = f"{ME}Set TFT replica with dp: {ranks}.\n".encode()
    return run


def test_the_groups_of_the_plan_pass_and_rest_on_lines_of_a_log(judged: Judge) -> None:
    judgement = judged(with_replicas({0: (0, 2), 1: (3, 1), 2: (0, 2), 3: (1, 3)}))
    assert not_passed(judgement) == []
    (finding,) = said(judgement, "consistency", "pass", EXPECTED)
    assert finding.by_log
    assert "in 4 lines" in finding.seen


@pytest.mark.parametrize("attempt", ["train", "resume"])
@pytest.mark.parametrize(
    ("given", "shown"), [((0, 1), "[0, 1]"), ((0,), "[0]"), (tuple(range(9)), "[0, 1, 2, 3, 4, 5, 6, 7, '…']")]
)
def test_other_groups_than_those_of_the_plan_are_unknown(
    judged: Judge, given: tuple[int, ...], shown: str, attempt: str
) -> None:
    judgement = judged(with_replicas({0: given, 1: (1, 3)}, attempt))
    (finding,) = said(judgement, "consistency", "unknown", EXPECTED)
    assert finding.seen.startswith(f"rank 0 is given {shown}, and its replica group in the plan is [0, 2]")
    assert finding.where == (f"logs/{attempt}/worker_0.log:1",)


def test_nothing_is_said_where_no_rank_has_the_line(judged: Judge) -> None:
    assert [finding for finding in judged(good_run()).findings if finding.expected == EXPECTED] == []
