"""200 random kills of the harness, over every kind of undo: nothing is left, and every history can be read."""

from __future__ import annotations

import pytest

from chaos.doctor import Machine, probe
from chaos.run.prepare.needs import needs_of_scenario
from tests.kit.killed_scenarios import ELSEWHERE, IN_CONTAINERS, KILLED, Killed
from tests.rehearsal.kit import Chaos

pytestmark = pytest.mark.nightly

_PART = 4
"""Kills in one call of the command line: each call goes on where the one before has stopped."""


@pytest.mark.parametrize("killed", [*KILLED, *IN_CONTAINERS], ids=lambda one: one.name)
def test_nothing_is_left_after_kills_and_each_kind_of_undo_was_open_at_one(fresh: Chaos, killed: Killed) -> None:
    """Which moments are drawn is chance: what none of them has hit is killed on for, at most as often again."""
    needs = needs_of_scenario(killed.load().scenario)
    lacking = [f"{result.need}: {result.seen}" for result in probe(needs, Machine()) if not result.ok]
    if lacking:
        pytest.skip(f"this machine lacks {', '.join(lacking)}")
    chosen = (killed.path, *(("--cell", killed.cell) if killed.cell else ()))
    hit: set[str] = set()
    for upto in range(_PART, 2 * killed.times + 1, _PART):
        options = ("--kill", "--times", str(upto), "--jobs", "2", "--reports", fresh.reports, "--json")
        done = fresh("soak", *chosen, *options)
        assert done.code == 0, done.errors
        assert done.json["left"] == []
        (cell,) = done.json["cells"]
        assert cell["killed"] == upto
        hit = set(cell["hit"])
        if upto >= killed.times and killed.undo <= hit:
            return
    assert killed.undo <= hit, f"{2 * killed.times} kills, and never with an open step of {killed.undo - hit}"


@pytest.mark.parametrize("action", ELSEWHERE)
def test_an_undo_that_no_soak_kills_says_who_does(action: str) -> None:
    pytest.skip(ELSEWHERE[action])
