"""A whole run in the pods of a real control plane: faults land, pods are replaced, the verdict is reached."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from tests.cluster.command_line import WAIT_SECONDS, Cluster, ended
from tests.kit.shipped import shipped

pytestmark = pytest.mark.processes

SCENARIO = shipped("kubernetes-pod-delete")


def test_a_deleted_pod_is_replaced_and_the_run_passes(cluster: Cluster) -> None:
    code, said = ended(cluster.run(SCENARIO))
    assert code == 0, said
    history = cluster.history()
    before = {
        event.data["node"]: event.data["uid"] for event in history.select("pod.state") if not event.data["deleting"]
    }
    (rescheduled,) = history.select("pod.rescheduled")
    assert rescheduled.data["node"] == 1
    assert rescheduled.data["before"]["uid"] != rescheduled.data["uid"] == before[1]
    (landed,) = history.select("fault.landed")
    assert {entry["pod"]["uid"] for entry in landed.data["evidence"]} == {rescheduled.data["before"]["uid"]}
    assert history.select("pod.restarted") == []
    result: dict[str, Any] = json.loads((cluster.path() / "result.json").read_bytes())
    assert result["verdict"] == "pass"
    assert [(pod["node"], pod["what"]) for pod in result["pods"]] == [(0, "untouched"), (1, "replaced")]
    assert result["pods"][1]["after"]["uid"] == before[1]
    assert cluster.left() == []


def test_after_a_killed_harness_heal_takes_away_what_the_run_has_made(cluster: Cluster) -> None:
    harness = cluster.run(SCENARIO, "--baseline", "none")

    def trains() -> bool:
        assert harness.poll() is None, ended(harness)
        latest = cluster.volume / "reports" / "latest"
        return latest.exists() and len(cluster.history().select("rank.found")) == 4

    wait_for("training", trains, seconds=WAIT_SECONDS, clock=SYSTEM_CLOCK)
    assert cluster.left() != []
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    code, said = ended(cluster.start("heal", "--reports", str(cluster.volume / "reports")))
    assert code == 0, said
    assert cluster.left() == []
