"""A random target is drawn with a seed that is printed, and the seed given back draws the same ranks."""

from __future__ import annotations

import re

from chaos.base.rank_sets import spans
from tests.rehearsal.kit import SCENARIOS, Chaos

RANDOM = SCENARIOS / "random-rank.yaml"


def ranks(chaos: Chaos, seed: int) -> list[int]:
    (plan,) = chaos("plan", RANDOM, "--seed", str(seed), "--json").json["plans"]
    (fault,) = plan["faults"]
    assert fault["seed"] == seed
    drawn: list[int] = fault["ranks"]
    return drawn


def test_the_seed_that_is_printed_draws_the_same_ranks_again(fresh: Chaos) -> None:
    shown = fresh("plan", RANDOM)
    line = re.search(r"kill on ranks ([\d,-]+), drawn with seed (\d+),", shown.output)
    assert shown.code == 0 and line is not None, shown.output
    again = fresh("plan", RANDOM, "--seed", line[2])
    assert again.output == shown.output
    assert spans(ranks(fresh, int(line[2]))) == line[1]


def test_other_seeds_draw_other_ranks(fresh: Chaos) -> None:
    drawn = [ranks(fresh, seed) for seed in range(3)]
    assert all(len(set(one)) == 2 and set(one) <= set(range(64)) for one in drawn)
    assert len({tuple(one) for one in drawn}) > 1
