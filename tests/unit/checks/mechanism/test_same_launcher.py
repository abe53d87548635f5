"""The launcher that starts ranks again had started them before, keeps them on its node, and is the one that ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.checks.mechanism import test_ft_rule as ft
from tests.unit.checks.mechanism.test_elastic_nodes import SECOND, on_two_nodes
from tests.unit.checks.mechanism.test_elastic_rule import good, spoilt
from tests.unit.checks.mechanism.test_rsc_rule import LAUNCHER, Story

Good = Callable[[], Story]
Spoilt = Callable[[Story, Path], list[tuple[str, str]]]

RULES = pytest.mark.parametrize(("made", "spoilt_by"), [(good, spoilt), (ft.good, ft.spoilt)], ids=["ELASTIC", "FT"])


def ended(story: Story, pid: int, node: int | None = None) -> None:
    """Record the end of a launcher."""
    where = {} if node is None else {"node": node}
    story.add(50.0, "launcher.exit", None, pid, role="launcher", signal=None, code=0, **where)


@RULES
def test_the_end_of_the_launcher_that_was_found_passes(tmp_path: Path, made: Good, spoilt_by: Spoilt) -> None:
    story = made()
    ended(story, LAUNCHER)
    assert spoilt_by(story, tmp_path) == []


@RULES
def test_the_end_of_another_process_is_unknown(tmp_path: Path, made: Good, spoilt_by: Spoilt) -> None:
    story = made()
    ended(story, 77)
    seen = f"the end that is recorded is that of process 77, and the launcher was process {LAUNCHER}"
    assert spoilt_by(story, tmp_path) == [("unknown", seen)]


@RULES
def test_without_a_recorded_end_nothing_contradicts(tmp_path: Path, made: Good, spoilt_by: Spoilt) -> None:
    assert spoilt_by(made(), tmp_path) == []


@RULES
def test_an_old_process_of_another_launcher_fails(tmp_path: Path, made: Good, spoilt_by: Spoilt) -> None:
    story = made()
    story.change("rank.found", 0, 0, ppid=77)
    seen = f"rank 0's process 100 was a child of process 77, not of launcher {LAUNCHER}"
    assert ("fail", seen) in spoilt_by(story, tmp_path)


def test_a_rank_that_comes_back_on_another_node_fails(tmp_path: Path) -> None:
    story = on_two_nodes(good())
    story.change("rank.found", 1, 1, node=1, ppid=SECOND)
    assert ("fail", "rank 1 was on node 0, and its new process is on node 1") in spoilt(story, tmp_path)


def test_the_end_of_each_node_is_that_of_its_launcher(tmp_path: Path) -> None:
    story = on_two_nodes(good())
    ended(story, LAUNCHER, 0)
    ended(story, SECOND, 1)
    assert spoilt(story, tmp_path) == []
    ended(story, 77, 1)
    seen = f"the end that is recorded is that of process 77, and the launcher was process {SECOND}"
    assert spoilt(story, tmp_path) == [("unknown", seen)]
