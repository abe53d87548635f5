"""A whole run in the pods of a real control plane: faults land, pods are replaced, the verdict is reached."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaos.history.clock import SYSTEM_CLOCK
from chaos.history.reader import History, read_history
from chaos.platforms.kubernetes.api import Api
from chaos.platforms.kubernetes.resources import CONFIGMAP, JOB, POD
from chaos.run.wait import wait_for
from tests.cluster.control_plane import ControlPlane
from tests.cluster.standin_kubelet import Kubelet

SCENARIO = Path(__file__).parents[2] / "scenarios" / "kubernetes-pod-delete.yaml"
WAIT_SECONDS = 600.0


@dataclass(frozen=True)
class Cluster:
    """A cluster with pods, and the command line called for it."""

    plane: ControlPlane
    api: Api
    namespace: str
    volume: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Call ``chaos``."""
        temporary = self.volume / "tmp"
        temporary.mkdir(exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-m", "chaos", *arguments],
            env={**os.environ, "KUBECONFIG": str(self.plane.kubeconfig), "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.volume,
        )

    def run(self, scenario: Path, *arguments: str) -> subprocess.Popen[str]:
        """Start a run of a scenario."""
        sets = (
            "--set",
            f"namespace={self.namespace}",
            "--set",
            f"volume={self.volume}",
            "--set",
            f"python={sys.executable}",
        )
        return self.start("run", str(scenario), *sets, "--reports", str(self.volume / "reports"), *arguments)

    def path(self) -> Path:
        """The directory of the latest run."""
        return (self.volume / "reports" / "latest").resolve()

    def history(self) -> History:
        """The history of the latest run."""
        return read_history(self.path() / "history")

    def left(self) -> list[str]:
        """What runs have left in the namespace."""
        found = []
        for resource in (POD, JOB, CONFIGMAP):
            query = {"labelSelector": "chaos-ascend.io/run"}
            items = self.api.request("get", resource.path(self.namespace), query=query)["items"]
            found += [f"{resource.kind} {one['metadata']['name']}" for one in items]
        return found


@pytest.fixture
def cluster(plane: ControlPlane, api: Api, workers: Kubelet, namespace: str) -> Iterator[Cluster]:
    # Sockets lie below it, whose paths must be short: pytest's own directories are not.
    with tempfile.TemporaryDirectory(prefix="chaos-test-") as volume:
        yield Cluster(plane, api, namespace, Path(volume))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, errors = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, output + errors


def written(scenario: Path, directory: Path, change: Callable[[str], str]) -> Path:
    path = directory / "scenario.yaml"
    path.write_text(change(scenario.read_text("utf-8")), "utf-8")
    return path


def test_a_deleted_pod_is_replaced_and_the_run_passes(cluster: Cluster) -> None:
    code, said = ended(cluster.run(SCENARIO))
    assert code == 0, said
    history = cluster.history()
    before = {one.data["node"]: one.data["uid"] for one in history.select("pod.state") if not one.data["deleting"]}
    (rescheduled,) = history.select("pod.rescheduled")
    assert rescheduled.data["node"] == 1
    assert rescheduled.data["before"]["uid"] != rescheduled.data["uid"] == before[1]
    (landed,) = history.select("fault.landed")
    assert {one["pod"]["uid"] for one in landed.data["evidence"]} == {rescheduled.data["before"]["uid"]}
    assert history.select("pod.restarted") == []
    result: dict[str, Any] = json.loads((cluster.path() / "result.json").read_bytes())
    assert result["verdict"] == "pass"
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
