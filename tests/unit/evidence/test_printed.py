"""Losses as they are printed: which are equal, which have no partner."""

from __future__ import annotations

import numpy as np
import pytest

from chaos.evidence.printed import Course, Track, course, unequal, without
from chaos.observe.logs.losses.loss_columns import NO_TIME, LossColumns
from chaos.observe.logs.losses.training_line import decimals


def columns(*losses: str, first: int = 1) -> LossColumns:
    """One line a step; ``N/A`` for no loss, an empty text for no line."""
    lines = [(step, text) for step, text in enumerate(losses, first) if text]
    texts = [text for _, text in lines]
    return LossColumns(
        line=np.arange(1, len(lines) + 1),
        step=np.array([step for step, _ in lines], np.int64),
        loss=np.array([np.nan if text == "N/A" else float(text) for text in texts]),
        places=np.array([decimals(text) for text in texts], np.int64),
        present=np.array([text != "N/A" for text in texts], np.bool_),
        wall=np.full(len(lines), NO_TIME),
        others=(),
        lines=len(lines),
        torn=False,
    )


def printed(*losses: str) -> Course:
    return course(Track([("worker_0.log", columns(*losses))]), len(losses))


@pytest.mark.parametrize(
    ("ours", "theirs", "tolerance", "equal"),
    [
        ("1.500", "1.500", 0.0, True),
        ("1.501", "1.500", 0.0, False),
        ("1.5004", "1.500", 0.0, True),
        ("1.500", "1.5005", 0.0, True),
        ("1.500", "1.5006", 0.0, False),
        ("1e-05", "1e-05", 0.0, True),
        ("1e-05", "2e-05", 0.0, False),
        ("nan", "nan", 0.0, False),
        ("inf", "inf", 0.0, False),
        ("101", "100", 0.01, True),
        ("103", "100", 0.01, False),
        ("1.520", "1.500", 0.01, False),
        ("1.516", "1.500", 0.01, True),  # 1.5155 may have been compared with 1.5005
        ("nan", "1.500", 0.5, False),
        ("inf", "1.500", 0.5, False),
        ("-1.500", "1.500", 0.5, False),
    ],
)
def test_which_losses_are_equal(ours: str, theirs: str, tolerance: float, equal: bool) -> None:
    compared, differing = unequal(printed(ours), printed(theirs), tolerance)
    assert compared == 1
    assert differing.tolist() == ([] if equal else [1])


def test_steps_that_only_one_side_has() -> None:
    ours, theirs = printed("1.0", "", "1.0", "N/A", "N/A"), printed("1.0", "1.0", "", "1.0", "N/A")
    assert without(ours, theirs).tolist() == [2, 3, 4]
    assert unequal(ours, theirs, 0.0)[0] == 1


def test_of_a_step_that_is_printed_twice_the_last_line_counts() -> None:
    before, after = columns("1.0", "2.0", "3.0"), columns("2.5", first=2)
    track = Track([("worker_0.before-1.log", before), ("worker_0.log", after)])
    counts = course(track, 3)
    assert [str(counts.at(step)) for step in (1, 2, 3)] == ["1.0", "2.5", "3.0"]
    assert counts.at(2).where == "worker_0.log:1"
    assert [str(track.at(row)) for row in track.returns()] == ["2.5"]
