"""AscendJobs and Volcano jobs on a real API server, through the definitions of their kinds.

The API server prunes and refuses by the essential fields of the published definitions. Ascend Operator and Volcano are
played: they make the pods, the PodGroup and the rank table, and nothing of their scheduling is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.run_client import RunClient
from chaos.platforms.kubernetes.workload import Named, manifests
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes
from tests.cluster import crds
from tests.cluster.command_line import WAIT_SECONDS, Cluster, ended
from tests.cluster.standin_operator import Operator, operator
from tests.kit.shipped import shipped

pytestmark = pytest.mark.processes

SCENARIO = shipped("kubernetes-pod-delete")
WORKLOADS = ("ascendjob", "vcjob")


@pytest.fixture
def defined(api: Api) -> None:
    crds.define(api, *crds.MINDCLUSTER)
    for namespace in ("kube-system", "cluster-system", "mindx-dl"):
        try:
            api.request("post", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        except ApiError as error:
            assert error.status == 409


@pytest.fixture
def played(api: Api, defined: None, cluster: Cluster) -> Iterator[Operator]:
    with operator(api, cluster.namespace) as made:
        yield made


def described(namespace: str, workload: str) -> list[dict[str, Any]]:
    said = {"namespace": namespace, "image": "none", "workload": workload, "npus": 2}
    job = Job.model_validate({"kind": "rehearsal", "steps": 1, "agent": True, "strategies": ["recover", "dump"]})
    return manifests(Kubernetes.model_validate(said), job, 2, Named("run-1", "train"))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_what_is_made_of_a_scenario_is_kept_whole_by_the_definitions(
    api: Api, defined: None, namespace: str, workload: str
) -> None:
    (manifest,) = described(namespace, workload)
    made = RunClient(api, namespace, "run-1").create(manifest)
    assert made.object["spec"] == manifest["spec"], "a field was pruned: the kind does not have it"
    assert made.object["metadata"].get("annotations") == manifest["metadata"].get("annotations")


@pytest.mark.parametrize(
    ("workload", "path", "value"),
    [
        ("ascendjob", ("replicaSpecs", "Worker", "restartPolicy"), "Sometimes"),
        ("ascendjob", ("runPolicy", "backoffLimit"), "3"),
        ("vcjob", ("policies", 0, "event"), "PodWasFailed"),
        ("vcjob", ("minAvailable",), "2"),
    ],
)
def test_the_definitions_refuse_what_they_forbid(
    api: Api, defined: None, namespace: str, workload: str, path: tuple[Any, ...], value: str
) -> None:
    (manifest,) = described(namespace, workload)
    place = manifest["spec"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ApiError, match="spec") as refused:
        RunClient(api, namespace, "run-1").create(manifest)
    assert refused.value.status == 422


def settled(cluster: Cluster, workload: str) -> Path:
    text = SCENARIO.read_text("utf-8").replace("workload: job", f"workload: {workload}").replace("npus: 0", "npus: 2")
    path = cluster.volume / f"{workload}.yaml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_run_in_the_pods_of_such_a_job_passes_and_its_recovery_is_followed(
    cluster: Cluster, played: Operator, workload: str
) -> None:
    harness = cluster.run(settled(cluster, workload))

    def resumes() -> bool:
        assert harness.poll() is None, ended(harness)
        latest = cluster.volume / "reports" / "latest"
        return latest.exists() and bool(cluster.history().select("pod.rescheduled"))

    wait_for("another pod", resumes, seconds=WAIT_SECONDS, clock=SYSTEM_CLOCK)
    played.annotate(ProcessRecoverStatus="recover-success")
    code, said = ended(harness)
    assert code == 0, said
    assert json.loads((cluster.path() / "result.json").read_bytes())["verdict"] == "pass"
    history = cluster.history()
    changes = [(event.data["key"], event.data["value"]) for event in history.select("podgroup.changed")]
    assert ("ProcessRecoverStatus", "recover-success") in changes
    assert history.select("kubernetes.unfollowed") == []
    placed = history.select("ranks.placed")
    assert {event.data["by"] for event in placed} == ({"rank table"} if workload == "ascendjob" else {"pods"})
    before, after = placed[0].data["pods"], placed[-1].data["pods"]
    assert sorted(before) == sorted(after) == ["0", "1", "2", "3"]
    assert before["0"] == before["1"] != before["2"] == before["3"]
    assert cluster.left() == []


OWN_MANIFEST = """\
apiVersion: mindxdl.gitee.com/v1
kind: AscendJob
metadata: {{name: mine, labels: {{framework: mindspore, team: vision}}}}
spec:
  schedulerName: volcano
  replicaSpecs:
    Scheduler: {{replicas: 1, restartPolicy: Never, template: {pod}}}
    Worker: {{replicas: 2, restartPolicy: Never, template: {worker}}}
"""


def test_a_run_in_the_pods_of_a_manifest_of_the_user_s_own(api: Api, cluster: Cluster, played: Operator) -> None:
    container: dict[str, Any] = {"name": "ascend", "image": "mine:3", "command": ["sleep", "infinity"]}
    container["volumeMounts"] = [{"name": "data", "mountPath": str(cluster.volume)}]
    volume = {"name": "data", "hostPath": {"path": str(cluster.volume)}}
    pod = {"spec": {"automountServiceAccountToken": False, "containers": [container], "volumes": [volume]}}
    npus = {"resources": {part: {"huawei.com/Ascend910": 2} for part in ("limits", "requests")}}
    worker = {"spec": {**pod["spec"], "containers": [{**container, **npus}]}}
    text = OWN_MANIFEST.format(pod=json.dumps(pod), worker=json.dumps(worker))
    (cluster.volume / "job.yaml").write_text(text, "utf-8")
    scenario = yaml.safe_load(SCENARIO.read_text("utf-8"))
    for key in ("image", "npus"):
        del scenario["cluster"]["kubernetes"][key]
    del scenario["variables"]["npus"]
    scenario["variables"]["workload"] = "ascendjob"
    scenario["cluster"]["kubernetes"]["manifest"] = "job.yaml"
    path = cluster.volume / "own.yaml"
    path.write_text(yaml.safe_dump(scenario), "utf-8")
    code, said = ended(cluster.run(path))
    assert code == 0, said
    history = cluster.history()
    assert {event.data["pod"].rpartition("-")[0] for event in history.select("pod.state")} >= {"mine-worker"}
    assert {event.data["by"] for event in history.select("ranks.placed")} == {"rank table"}
    assert cluster.left() == []


def test_a_rank_table_that_has_the_ranks_elsewhere_refuses_the_run(cluster: Cluster, played: Operator) -> None:
    played.swapped = True
    code, said = ended(cluster.run(settled(cluster, "ascendjob")))
    assert code not in (0, 1), said
    assert "the rank table has rank 0 in pod" in said
    assert cluster.left() == []
