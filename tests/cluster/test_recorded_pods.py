"""The recorded run in pods, which ``chaos selftest`` spoils, is as one that is made today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.command_line import Cluster, ended
from tests.kit.runs.recorded_bases import SCENARIOS, hold_against

pytestmark = pytest.mark.processes


@pytest.mark.nightly
def test_the_recorded_run_in_pods_is_as_one_that_is_made_today(cluster: Cluster, tmp_path: Path) -> None:
    code, said = ended(cluster.run(SCENARIOS / "pods.yaml"))
    assert code == 0, said
    hold_against("pods", cluster.path(), tmp_path / "held")
    assert cluster.left() == []
