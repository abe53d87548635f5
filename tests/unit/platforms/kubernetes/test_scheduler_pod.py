"""MindSpore's scheduler has a pod with a worker's number; it is no node of the scenario unless ranks run in it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from chaos.platforms.kubernetes.client.api import Api
from chaos.platforms.kubernetes.client.watching import Change
from chaos.platforms.kubernetes.facts import PodFacts
from chaos.platforms.kubernetes.names import REPLICA_TYPE
from chaos.platforms.kubernetes.ranks import node_number
from chaos.platforms.kubernetes.resources import POD
from chaos.platforms.kubernetes.workload import Named, manifests
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes
from tests.cluster.standin_operator import Operator
from tests.unit.platforms.kubernetes.standin_api import SETTINGS, Cluster


def pods_of(workload: str, nodes: int, *, scheduler_npus: int = 0) -> list[dict[str, Any]]:
    """The pods that Ascend Operator, or Volcano, makes of a scenario's job, in the order in which they come."""
    cluster = Cluster()
    run_client = cluster.run_client()
    settings = Kubernetes.model_validate({**SETTINGS, "workload": workload, "npus": 2})
    (job,) = manifests(settings, Job(steps=1), nodes, Named(run_client.run, "train"))
    if scheduler_npus:
        (container,) = job["spec"]["replicaSpecs"]["Scheduler"]["template"]["spec"]["containers"]
        container["resources"] = {part: {"huawei.com/Ascend910": scheduler_npus} for part in ("limits", "requests")}
    run_client.create(job)
    Operator(cast("Api", cluster), "train").look()
    made = cluster.request("get", POD.path("train"))["items"]
    return sorted(made, key=lambda one: int(one["metadata"]["resourceVersion"]))


def numbers(pods: list[dict[str, Any]]) -> dict[str, int | None]:
    return {pod["metadata"]["name"]: node_number(pod) for pod in pods}


def test_the_scheduler_of_an_ascendjob_is_no_node_and_its_workers_are() -> None:
    pods = pods_of("ascendjob", 2)
    assert numbers(pods) == {"train-worker-0": 0, "train-worker-1": 1, "train-scheduler-0": None}
    assert {pod["metadata"]["annotations"]["hccl/rankIndex"] for pod in pods} == {"0", "1"}
    facts = PodFacts()
    entries = [name for pod in pods for name, _ in facts.take(Change("ADDED", pod))]
    assert entries == ["pod.state"] * 3, "no pod has taken another's place"


@pytest.mark.parametrize("sign", ["label", "environment"])
def test_one_sign_of_a_scheduler_is_enough(sign: str) -> None:
    scheduler = pods_of("ascendjob", 1)[-1]
    if sign == "label":
        scheduler["spec"]["containers"][0]["env"] = []
    else:
        del scheduler["metadata"]["labels"][REPLICA_TYPE]
    assert node_number(scheduler) is None


def test_a_scheduler_with_npus_trains_as_node_0_and_the_workers_count_from_1() -> None:
    pods = pods_of("ascendjob", 2, scheduler_npus=2)
    assert numbers(pods) == {"train-worker-0": 1, "train-worker-1": 2, "train-scheduler-0": 0}


def test_the_pods_of_a_volcano_job_are_all_nodes() -> None:
    assert sorted(map(str, numbers(pods_of("vcjob", 2)).values())) == ["0", "1"]
