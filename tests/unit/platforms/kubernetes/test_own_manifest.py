"""A run in the pods of the user's own manifest: labels are added, nothing else; what cannot be run has its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.platforms.kubernetes.check.check import Demands
from chaos.platforms.kubernetes.own_manifest import own_objects, own_problems
from chaos.platforms.kubernetes.workload import Named
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.kubernetes import Kubernetes

NAMED = Named("run-1", "chaos-1")

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: mine
  labels: {team: vision}
spec:
  backoffLimit: 7
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: ascend
          image: "mine:3"
          command: [sleep, infinity]
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
POD = """
            spec:
              containers:
                - name: ascend
                  image: "mine:3"
                  command: ["sh", "-c", "sleep infinity"]
                  volumeMounts: [{name: data, mountPath: /data}]
              volumes: [{name: data, nfs: {server: nas, path: /data}}]
"""
ASCENDJOB = f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: rings-config-mine}}
data: {{hccl.json: '{{"status": "initializing"}}'}}
---
apiVersion: mindxdl.gitee.com/v1
kind: AscendJob
metadata:
  name: mine
  labels: {{framework: mindspore}}
spec:
  replicaSpecs:
      Scheduler:
          replicas: 1
          template:{POD}
      Worker:
          replicas: 2
          template:{POD}
"""
VCJOB = f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: mine}}
spec:
  tasks:
      -   name: first
          replicas: 1
          template:{POD}
      -   name: second
          replicas: 1
          template:{POD}
"""


def settings(workload: str) -> Kubernetes:
    said = {"namespace": "train", "manifest": "job.yaml", "workload": workload}
    return Kubernetes.model_validate({**said, "volume": {"path": "/data/chaos", "host_path": "/data/chaos"}})


def written(directory: Path, text: str) -> Path:
    path = directory / "job.yaml"
    path.write_text(text, "utf-8")
    return path


def without_labels(document: Any) -> Any:
    """What a document says beside its labels, and beside metadata that there is for them alone."""
    if isinstance(document, list):
        return [without_labels(one) for one in document]
    if not isinstance(document, dict):
        return document
    kept = {key: without_labels(value) for key, value in document.items() if key != "labels"}
    return {key: value for key, value in kept.items() if key != "metadata" or value}


@pytest.mark.parametrize(
    ("workload", "text", "nodes", "numbers"),
    [
        ("job", JOB, 1, ["0"]),
        ("ascendjob", ASCENDJOB, 2, [None, None]),
        ("vcjob", VCJOB, 2, ["0", "1"]),
    ],
)
def test_labels_are_added_and_nothing_else_is_changed(
    tmp_path: Path, workload: str, text: str, nodes: int, numbers: list[str | None]
) -> None:
    path = written(tmp_path, text)
    assert own_problems(path, settings(workload), Demands(nodes=nodes, namespace="train")) == ()
    name, made = own_objects(path, settings(workload), nodes, NAMED)
    assert name == "mine"
    assert [without_labels(manifest) for manifest in made] == [
        without_labels(document) for document in yaml.safe_load_all(text)
    ]
    assert {manifest["metadata"]["labels"]["chaos-ascend.io/run"] for manifest in made} == {"run-1"}
    spec = made[-1]["spec"]
    pods = spec.get("tasks") or [*spec.get("replicaSpecs", {}).values()] or [spec]
    labels = [pod["template"]["metadata"]["labels"] for pod in pods]
    assert [label["chaos-ascend.io/run"] for label in labels] == ["run-1"] * len(pods)
    assert [label.get("chaos-ascend.io/node") for label in labels] == numbers
    if workload == "job":
        assert made[-1]["metadata"]["labels"]["team"] == "vision"


REFUSED = [
    (
        "command: [sleep, infinity]",
        'command: [msrun, "--worker_num=8", train.py]',
        "runs 'msrun --worker_num=8 train.py'",
    ),
    ("command: [sleep, infinity]", 'command: [sh, -c, "sleep 5; python train.py"]', "its pods have to wait"),
    ("command: [sleep, infinity]", 'command: [sleep, "600"]', "its pods have to wait"),
    ("          command: [sleep, infinity]\n", "", "runs what the image says"),
    ("- name: ascend", "- name: trainer", "no container of pod pod is called ascend"),
    ("mountPath: /data}", "mountPath: /elsewhere}", "mounts no shared volume at /data/chaos"),
    ("mountPath: /data}", "mountPath: /data, subPath: x}", "mounts no shared volume at /data/chaos"),
    ("persistentVolumeClaim: {claimName: data}", "emptyDir: {}", "mounts no shared volume at /data/chaos"),
    ("team: vision", "chaos-ascend.io/run: other", "label chaos-ascend.io/run is what runs are found by"),
    ("  name: mine\n", "  generateName: mine-\n", "no metadata.name"),
    ("  name: mine\n", "  name: mine\n  namespace: other\n", "the namespace is other, and the scenario's is train"),
    (
        "apiVersion: batch/v1",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: batch/v1",
        "no Secret",
    ),
]


@pytest.mark.parametrize(("old", "new", "said"), REFUSED)
def test_what_cannot_be_run_as_it_is_written_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in JOB
    path = written(tmp_path, JOB.replace(old, new, 1))
    problems = own_problems(path, settings("job"), Demands(nodes=1, namespace="train"))
    found = [problem for problem in problems if said in problem.message]
    assert found and found[0].line > 0, [str(problem) for problem in problems]
    with pytest.raises(ScenarioError):
        own_objects(path, settings("job"), 1, NAMED)


def test_pods_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    parallel = written(tmp_path, JOB.replace("  backoffLimit: 7\n", "  parallelism: 2\n  completions: 2\n"))
    (found,) = own_problems(parallel, settings("job"), Demands(nodes=2))
    assert "have no index" in found.message
    mixed = written(tmp_path, VCJOB.replace("replicas: 1", "replicas: 2", 1))
    assert any("is unknown" in problem.message for problem in own_problems(mixed, settings("vcjob"), Demands(nodes=3)))


def test_another_kind_of_job_than_the_scenario_says_is_refused(tmp_path: Path) -> None:
    (problem,) = own_problems(written(tmp_path, JOB), settings("vcjob"), Demands(nodes=1))
    assert "of the kind job, and cluster.kubernetes.workload says vcjob" in problem.message


SCENARIO = """\
chaos: 1
name: mine
cluster:
  platform: kubernetes
  ranks: 2
  kubernetes: {namespace: train, manifest: job.yaml, volume: {path: /data/chaos, host_path: /data/chaos}}
job: {kind: plain, steps: 4, protection: [TTP]}
"""


def planned(directory: Path, job: str, scenario: str = SCENARIO) -> None:
    written(directory, job)
    path = directory / "scenario.yaml"
    path.write_text(scenario, "utf-8")
    loaded = load_scenario(path, settings={}, names=known_names())
    plan_cell(loaded, loaded.cells[0], 0)


def test_the_plan_refuses_what_the_manifest_cannot_do(tmp_path: Path) -> None:
    planned(tmp_path, JOB)
    with pytest.raises(ScenarioError, match=r"job\.yaml:14:\d+: pod pod runs"):
        planned(tmp_path, JOB.replace("[sleep, infinity]", "[python, train.py]"))
    (tmp_path / "job.yaml").unlink()
    with pytest.raises(ScenarioError, match=r"job\.yaml"):
        loaded = load_scenario(tmp_path / "scenario.yaml", settings={}, names=known_names())
        plan_cell(loaded, loaded.cells[0], 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [("manifest: job.yaml, image: x", "either image, or a manifest"), ("manifest: job.yaml, npus: 2", "says itself")],
)
def test_what_the_manifest_says_is_said_once(tmp_path: Path, change: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        planned(tmp_path, JOB, SCENARIO.replace("manifest: job.yaml", change))


def test_an_undo_step_that_holds_the_settings_is_read_again() -> None:
    answer = settings("job")
    assert Kubernetes.model_validate(answer.model_dump(mode="json")) == answer
