"""What in a job's manifest keeps MindCluster from recovering it is told with its line; a good one has no problem."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from chaos.platforms.kubernetes.check.check import Checked, Demands, check_file
from chaos.platforms.kubernetes.workload import Named, manifests
from chaos.scenario.errors import ScenarioError
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes

ASCENDJOB = """\
apiVersion: mindxdl.gitee.com/v1
kind: AscendJob
metadata:
  name: llama
  namespace: train
  labels:
    framework: mindspore
    fault-scheduling: "grace"
    fault-retry-times: "3"
    pod-rescheduling: "on"
    subHealthyStrategy: "ignore"
  annotations:
    recover-strategy: "retry,recover,dump"
spec:
  schedulerName: volcano
  runPolicy:
    schedulingPolicy:
      minAvailable: 3
  replicaSpecs:
    Scheduler:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: ascend
              image: train:1
              env:
                - name: TTP_PORT
                  value: "8000"
                - name: POD_IP
                  valueFrom: {fieldRef: {fieldPath: status.podIP}}
              ports:
                - containerPort: 8000
                - containerPort: 9601
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: ascend
              image: train:1
              env:
                - name: TTP_PORT
                  value: "8000"
                - name: POD_IP
                  valueFrom: {fieldRef: {fieldPath: status.podIP}}
              ports:
                - containerPort: 8000
                - containerPort: 9601
              resources:
                limits:
                  huawei.com/Ascend910: 4
                requests:
                  huawei.com/Ascend910: 4
"""

DEFECTS = [
    ('"retry,recover,dump"', '"retry, recover"', "blank", 13),
    ('"retry,recover,dump"', '"retry,recovery"', "which Ascend Operator ignores", 13),
    ('"retry,recover,dump"', '"recover,elastic-training"', "PyTorch only", 13),
    ('pod-rescheduling: "on"', "pod-rescheduling: on", "boolean", 10),
    ('pod-rescheduling: "on"', 'pod-rescheduling: "true"', "which MindCluster ignores", 10),
    ('pod-rescheduling: "on"', 'process-recover-enable: "pause"', "switched pause", 10),
    ('pod-rescheduling: "on"', 'Pod-Rescheduling: "on"', "no component reads label", 10),
    ('"grace"', '"forced"', "which MindCluster ignores", 8),
    ('"grace"', '"force"', 'fault-scheduling: "grace"', 8),
    ('fault-retry-times: "3"', 'fault-retry-times: "0"', "larger than 0", 9),
    ('fault-retry-times: "3"', 'fault-retry-times: "many"', "a whole number, 0 or more", 9),
    ('subHealthyStrategy: "ignore"', 'subHealthyStrategy: "hotswitch"', "which MindCluster ignores", 11),
    ('subHealthyStrategy: "ignore"', 'recover-strategy: "dump"', "annotations only", 11),
    ("  annotations:\n", '  annotations:\n    wait-reschedule-timeout: "20"\n', "from 30 to 270", 13),
    ("framework: mindspore", "framework: tensorflow", "jobs of MindSpore and PyTorch", 7),
    ("minAvailable: 3", "minAvailable: 4", "would never start", 18),
    ("    Worker:\n      replicas: 2", "    Master:\n      replicas: 2", "not of MindSpore", 36),
    ("      replicas: 1\n", "      replicas: 2\n", "exactly one Scheduler", 21),
    ("name: ascend\n              image", "name: train\n              image", "is called ascend", 25),
    ("                - containerPort: 9601\n              res", "              res", "9601", 49),
    (
        'value: "8000"\n',
        'value: "8001"\n',
        "must be the same in all pods",
        23,
    ),
    ("requests:\n                  huawei.com/Ascend910: 4", "requests: {}", "same in limits and in requests", 54),
    ("restartPolicy: Never\n      template:\n", "restartPolicy: OnFailure\n      template:\n", "must be Never", 22),
]


def checked(directory: Path, text: str, demands: Demands | None = None) -> Checked:
    path = directory / "job.yaml"
    path.write_text(text, "utf-8")
    return check_file(path, demands)


def test_a_good_manifest_has_no_problem(tmp_path: Path) -> None:
    found = checked(tmp_path, ASCENDJOB, Demands(("retry", "recover", "dump"), nodes=2, ranks=8, namespace="train"))
    assert (found.workload, [str(problem) for problem in found.problems]) == ("ascendjob", [])


@pytest.mark.parametrize(("old", "new", "said", "line"), DEFECTS)
def test_each_defect_is_told_with_its_line(tmp_path: Path, old: str, new: str, said: str, line: int) -> None:
    assert old in ASCENDJOB
    problems = checked(tmp_path, ASCENDJOB.replace(old, new, 1)).problems
    assert any(said in problem.message and problem.line == line for problem in problems), "\n".join(map(str, problems))


@pytest.mark.parametrize(
    ("demands", "said"),
    [
        (Demands(strategies=("dump",)), "the scenario expects dump"),
        (Demands(nodes=3), "the scenario has 3 nodes"),
        (Demands(ranks=16), "the pods have 8 NPUs"),
        (Demands(namespace="other"), "the scenario's is other"),
    ],
)
def test_what_the_scenario_says_otherwise_is_told(tmp_path: Path, demands: Demands, said: str) -> None:
    assert any(said in problem.message for problem in checked(tmp_path, ASCENDJOB, demands).problems)


def test_a_vcjob_needs_the_switch_that_the_operator_sets_for_others(tmp_path: Path) -> None:
    text = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: llama
  labels: {framework: mindspore, fault-scheduling: "grace"}
  annotations:
    recover-strategy: "dump"
spec:
  tasks: []
"""
    said = [problem.message for problem in checked(tmp_path, text).problems]
    assert any("on a vcjob nothing sets it" in one for one in said)
    switched = text.replace("framework: mindspore,", 'framework: mindspore, process-recover-enable: "on",')
    assert not any("on a vcjob nothing sets it" in problem.message for problem in checked(tmp_path, switched).problems)


def test_recovery_labels_on_a_plain_job_mean_nothing(tmp_path: Path) -> None:
    text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, labels: {pod-rescheduling: 'on'}}\nspec: {}\n"
    problems = checked(tmp_path, text).problems
    assert [problem.line for problem in problems if "means nothing" in problem.message] == [3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "expected"),
        ("kind: Pod\n", "has 0 jobs"),
        ("chaos: 1\nname: a\njob: {steps: 4}\n", "is a scenario, and no manifest"),
        ("", "no manifest"),
        (ASCENDJOB + "---\n" + ASCENDJOB, "has 2 jobs"),
        ("kind: AscendJob\nkind: Job\n", "written twice"),
        ("a: !!python/name:os.system x\n", "is not read"),
        ("- a\n", "a mapping of keys"),
        ("a: &a [*a]\n", "too deep"),
        ("a: " + "[" * 40 + "]" * 40, "too deep"),
        ("a: &a {<<: *a}\n", "too deep"),
        ("a: {<<: text}\n", "a merge key takes a mapping"),
        ("a: {? [1] : 2}\n", "a key must be plain text"),
        ("apiVersion: v1\nkind: List\nitems: [1]\n", "a mapping of keys"),
        ("apiVersion: apps/v1\nkind: Deployment\n", "trains in a Deployment, which this harness neither checks"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        checked(tmp_path, text)
    assert said in str(refused.value)


@pytest.mark.parametrize("workload", ["job", "vcjob", "ascendjob"])
@pytest.mark.parametrize("strategies", [(), ("dump",), ("retry", "recover", "dump"), ("recover-in-place", "exit")])
def test_what_is_made_from_a_scenario_passes_the_check(
    tmp_path: Path, workload: str, strategies: tuple[str, ...]
) -> None:
    if workload == "job" and strategies:
        pytest.skip("a plain Job is recovered by no strategy")
    volume = {"path": "/r", "claim": "c"}
    settings = Kubernetes.model_validate(
        {"namespace": "train", "workload": workload, "image": "train:1", "npus": 4, "volume": volume}
    )
    job = Job.model_validate({"steps": 3, "agent": bool(strategies), "strategies": strategies})
    made = manifests(settings, job, 2, Named("run-1", "run-1-train"))
    demands = Demands(job.strategies or None, nodes=None if workload == "job" else 2, namespace="train")
    for number, one in enumerate(made):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump(one), "utf-8")
        assert [str(problem) for problem in check_file(path, demands).problems] == []


def test_every_object_and_pod_carries_the_run(tmp_path: Path) -> None:
    for workload in ("job", "vcjob", "ascendjob"):
        settings = Kubernetes.model_validate({"namespace": "train", "workload": workload, "image": "train:1"})
        for manifest in manifests(settings, Job.model_validate({"steps": 3}), 2, Named("run-1", "run-1-train")):
            assert manifest["metadata"]["namespace"] == "train"
            text = yaml.safe_dump(manifest)
            assert text.count("chaos-ascend.io/run: run-1") >= 2, text


def test_a_number_of_nodes_that_is_none_is_refused() -> None:
    settings = Kubernetes.model_validate({"namespace": "train", "image": "train:1"})
    with pytest.raises(ValueError, match="at least one"):
        manifests(settings, Job.model_validate({"steps": 3}), 0, Named("r", "r"))
