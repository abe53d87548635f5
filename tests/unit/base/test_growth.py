"""Limits grow with the number of ranks, and say how they came about."""

from __future__ import annotations

import copy
import json

from chaos.base.growth import FEW, Growing, in_words


def test_a_limit_grows_beyond_the_first_ranks_only() -> None:
    assert [float(Growing(60, 1, ranks)) for ranks in (1, FEW, FEW + 1, 128)] == [60.0, 60.0, 61.0, 172.0]


def test_a_grown_limit_says_how_it_came_about() -> None:
    assert in_words(Growing(60, 1, 128)) == "172 s (60 s, and 1 s for each of the 112 ranks beyond 16)"
    assert in_words(Growing(60, 0.5, 17)) == "60.5 s (60 s, and 0.5 s for the one rank beyond 16)"
    assert [in_words(limit) for limit in (Growing(60, 1, 4), Growing(60, 0, 128), 2.5)] == ["60 s", "60 s", "2.5 s"]


def test_it_is_a_number_like_any_other() -> None:
    limit = Growing(60, 1, 128)
    assert json.dumps({"seconds": limit}) == '{"seconds": 172.0}'
    assert in_words(copy.deepcopy(limit)) == in_words(limit)
