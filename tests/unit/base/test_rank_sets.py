"""Sets of ranks are spoken of as sets, and the words stay short however many there are."""

from __future__ import annotations

import pytest

from chaos.base.rank_sets import by_word, named, rank_set, spans


@pytest.mark.parametrize(
    ("ranks", "of", "words"),
    [
        ([], 4, "no rank"),
        ([2], 4, "rank 2"),
        ([0, 1], None, "ranks 0-1"),
        ([3, 1], 4, "ranks 1,3 (2 of 4)"),
        ([8, 3, 2, 1, 0, 3], 128, "ranks 0-3,8 (5 of 128)"),
        (range(128), 128, "ranks 0-127"),
        (range(4096), None, "ranks 0-4095 (4,096 in all)"),
        (range(0, 128, 2), 128, "ranks 0,2,4,6,8,10,12,…,126 (64 of 128)"),
    ],
)
def test_a_set_is_told_by_its_spans_and_its_size(ranks: list[int], of: int | None, words: str) -> None:
    assert rank_set(ranks, of) == words


def test_a_set_can_be_named_without_its_size() -> None:
    assert [named(ranks) for ranks in ([], [7], range(7, 99))] == ["no rank", "rank 7", "ranks 7-98"]


def test_the_words_do_not_grow_with_the_set() -> None:
    assert max(len(rank_set(range(0, size, 3), size)) for size in (128, 8192, 131_072)) < 80
    assert spans([5, 4, 4]) == "4-5"


def test_what_is_true_of_several_is_said_once() -> None:
    assert by_word({3: "dead", 0: "alive", 1: "dead", 2: "alive"}) == {"alive": [0, 2], "dead": [1, 3]}
