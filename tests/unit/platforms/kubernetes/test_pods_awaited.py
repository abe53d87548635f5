"""The pods of a run are waited for until they run, whatever the API says meanwhile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes import platform
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.facts import pod_state
from chaos.platforms.kubernetes.names import NODE_LABEL
from chaos.platforms.kubernetes.platform import PodNodes
from chaos.platforms.kubernetes.resources import POD
from chaos.platforms.nodes import Site
from chaos.scenario.models.kubernetes import Kubernetes
from tests.unit.conftest import FakeClock
from tests.unit.platforms.kubernetes.standin_api import Cluster

SILENT = ApiError(503, "503 not ready")


@pytest.fixture
def nodes(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PodNodes:
    run_client = cluster.run_client()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first", "labels": {NODE_LABEL: "0"}}}
    status = {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": [{"name": "ascend", "ready": True}]}
    run_client.create({**pod, "spec": {"nodeName": "worker-1"}, "status": status})

    def of_node(_: int) -> Any:
        found = cluster.objects[f"{POD.path('train')}/first"]
        return pod_state(found)

    followed = SimpleNamespace(of_node=of_node, lost=None, failed=(), close=lambda: None)
    monkeypatch.setattr(platform, "Pods", lambda *_: followed)
    monkeypatch.setattr(platform, "_helper", lambda *_: SimpleNamespace(lost=None, close=lambda: None))
    settings = Kubernetes.model_validate({"namespace": "train", "image": "none", "workload": "ascendjob", "npus": 1})
    unused: Any = None
    site = Site(
        *("run-12345678", 1, tmp_path, tmp_path / "private", (), (), settings, unused, Path("python"), unused),
        clock=FakeClock(),
        ranks=2,
    )
    return PodNodes(site, settings, run_client, {})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("unanswered", [1, 2, 3, 10])
def test_an_api_that_does_not_answer_for_a_moment_is_asked_again(
    cluster: Cluster, nodes: PodNodes, unanswered: int
) -> None:
    cluster.silences = [SILENT] * unanswered
    (node,) = nodes.ready()
    assert node.pod.name == "first" and cluster.silences == []


def test_the_rank_table_is_asked_for_again(cluster: Cluster, nodes: PodNodes) -> None:
    nodes.ready()
    cluster.silences = [SILENT] * 3
    nodes.ready()  # nothing but the rank table is asked for: the pod is known
    assert cluster.silences == []


def test_what_it_refuses_ends_the_waiting(cluster: Cluster, nodes: PodNodes) -> None:
    cluster.silences = [ApiError(403, "pods is forbidden")]
    with pytest.raises(PlatformError, match="is forbidden"):
        nodes.ready()


def test_one_that_stays_silent_is_told_with_the_deadline(cluster: Cluster, nodes: PodNodes) -> None:
    cluster.silences = cast("list[ApiError]", [SILENT] * 100_000)
    with pytest.raises(PlatformError, match=r"deadline 'pods' of 300 s: not all pods run: node 0: .*503 not ready"):
        nodes.ready()
