"""A soak of kills over the faults that change most: signals, suspensions, mounts."""

from __future__ import annotations

import pytest

from chaos.platforms.mounts import may_mount
from tests.rehearsal.kit import Chaos

pytestmark = [pytest.mark.rehearsal, pytest.mark.nightly]

TIMES = 10
SCENARIOS = ("kill-rank.yaml", "suspend-rank.yaml", "disk-full.yaml", "read-only.yaml")


def test_nothing_is_left_after_40_random_kills(fresh: Chaos) -> None:
    if not may_mount():
        pytest.skip("mounting needs CAP_SYS_ADMIN, which this process has not")
    command = ("soak", *SCENARIOS, "--kill", "--times", str(TIMES), "--jobs", "2", "--reports", fresh.reports, "--json")
    done = fresh(*command)
    assert done.code == 0, done.errors
    assert done.json["left"] == []
    assert [one["killed"] for one in done.json["cells"]] == [TIMES] * len(SCENARIOS)
