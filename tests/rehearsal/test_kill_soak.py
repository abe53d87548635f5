"""200 random kills of the harness, most of them with plain ranks: nothing is left, and every history can be read."""

from __future__ import annotations

import pytest

from chaos.platforms.mounts import may_mount
from tests.rehearsal.kit import Chaos

pytestmark = pytest.mark.nightly


def kills(chaos: Chaos, times: int, step: int, *scenarios: str) -> None:
    """Kill in parts, each of which goes on where the one before has stopped."""
    for upto in range(step, times + 1, step):
        options = ("--kill", "--times", str(upto), "--jobs", "2", "--reports", chaos.reports, "--json")
        done = chaos("soak", *scenarios, *options)
        assert done.code == 0, done.errors
        assert done.json["left"] == []
        assert [one["killed"] for one in done.json["cells"]] == [upto] * len(scenarios)


def test_nothing_is_left_after_32_kills_with_mindspore(fresh: Chaos) -> None:
    """Over the faults that change most: signals, suspensions, mounts."""
    if not may_mount():
        pytest.skip("mounting needs CAP_SYS_ADMIN, which this process has not")
    kills(fresh, 8, 2, "kill-rank.yaml", "suspend-rank.yaml", "disk-full.yaml", "read-only.yaml")


def test_nothing_is_left_after_168_kills_with_plain_ranks(fresh: Chaos) -> None:
    kills(fresh, 168, 28, "plain-kill-rank.yaml")
