"""Periodic checkpoints are held against what their ranks recorded, even where nobody has loaded them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from chaos.checks.finding import Finding
from chaos.checks.periodic_values import EXPECTED
from tests.unit.checks.judging import Judge
from tests.unit.good_run import SAVED, GoodRun, digests_of, state_after
from tests.unit.restored_run import restored_run


@pytest.fixture
def run() -> GoodRun:
    return restored_run()


def findings(judged: Judge, run: GoodRun) -> list[Finding]:
    return [one for one in judged(run).findings if one.check == "checkpoint" and one.expected == EXPECTED]


def test_files_that_hold_what_the_ranks_held_pass(run: GoodRun, judged: Judge) -> None:
    assert [(one.verdict, one.seen) for one in findings(judged, run)] == [("pass", "3 files compared by digest")]


def zeroed(run: GoodRun) -> None:
    state = run.saved[1].state
    run.saved[1].state = {**state, "moments.layer1.weight": np.zeros_like(state["moments.layer1.weight"])}


def of_step_before(run: GoodRun) -> None:
    run.saved[1].state = {**state_after(1, SAVED - 1), "global_step": np.array([SAVED], np.int32)}


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (zeroed, "1 of 6 parameters in rank 1's file of step 5 differ: moments.layer1.weight"),
        (of_step_before, f"(layer1.bias is rank 1's of step {SAVED - 1})"),
    ],
)
def test_another_content_fails_at_any_tolerance(
    run: GoodRun, judged: Judge, spoil: Callable[[GoodRun], None], seen: str
) -> None:
    spoil(run)
    for tolerance in (0.0, 0.1):
        run.replan(loss_tolerance=tolerance)
        (found,) = findings(judged, run)
        assert found.verdict == "fail" and seen in found.seen and "rank_1" in found.where[0]


def test_any_state_of_a_step_that_was_trained_twice_will_do(run: GoodRun, judged: Judge) -> None:
    first = run.one("digest", attempt="train", rank=1, step=SAVED)
    run.add("train-rank_1", {**first, "mono": first["mono"] + 1, "parameters": digests_of(state_after(1, SAVED - 1))})
    assert [one.verdict for one in findings(judged, run)] == ["pass"]


def test_without_a_digest_or_a_sound_file_nothing_is_said(run: GoodRun, judged: Judge) -> None:
    run.drop("digest", attempt="train", step=SAVED)
    assert findings(judged, run) == []
    run = restored_run()
    for saved in run.saved.values():
        saved.state = {}
    assert findings(judged, run) == []
