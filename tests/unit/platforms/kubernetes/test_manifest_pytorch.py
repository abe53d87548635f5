"""A manifest of a PyTorch job is checked as MindSpore's are, and by what Ascend Operator gives its containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.platforms.kubernetes.check.check import Demands
from chaos.platforms.kubernetes.check.pytorch import given
from chaos.platforms.kubernetes.own_manifest import own_problems
from chaos.scenario.models.kubernetes import Kubernetes
from tests.unit.platforms.kubernetes.test_manifest_check import checked

CONTAINER = """\
            - name: ascend
              image: train:1
              command: ["bash", "-c", "{start}torchrun pretrain_gpt.py"]
              env:
                - {{name: TTP_PORT, value: "8000"}}
                - {{name: POD_IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}{env}
              ports: [{{containerPort: 8000, name: ttp-port}}, {{containerPort: 9601, name: taskd-port}}]
              resources: {{limits: {{huawei.com/Ascend910: 8}}, requests: {{huawei.com/Ascend910: 8}}}}
"""


def manifest(strategies: str = "retry,recover,dump", *, env: str = "", start: str = "", workers: int = 1) -> str:
    """An AscendJob of a Master and Workers; ``env`` and ``start`` are the Master's."""
    annotations = f'  annotations: {{recover-strategy: "{strategies}"}}\n' if strategies else ""
    entry = f"\n                - {env}" if env else ""
    head = f"""\
apiVersion: mindxdl.gitee.com/v1
kind: AscendJob
metadata:
  name: qwen
  namespace: train
  labels: {{framework: pytorch, fault-scheduling: "grace", fault-retry-times: "3"}}
{annotations}spec:
  schedulerName: volcano
  successPolicy: AllWorkers
  runPolicy: {{schedulingPolicy: {{minAvailable: {1 + workers}}}}}
  replicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
"""
    worker = f"""\
    Worker:
      replicas: {workers}
      restartPolicy: Never
      template:
        spec:
          containers:
"""
    master = CONTAINER.format(env=entry, start=start)
    return head + master + (worker + CONTAINER.format(env="", start="") if workers else "")


def messages(directory: Path, text: str) -> list[str]:
    return [problem.message for problem in checked(directory, text).problems]


def test_a_good_pytorch_manifest_has_no_problem(tmp_path: Path) -> None:
    demands = Demands(("retry", "recover", "dump"), nodes=2, ranks=16, namespace="train")
    found = checked(tmp_path, manifest(), demands)
    assert (found.workload, [str(problem) for problem in found.problems]) == ("ascendjob", [])


@pytest.mark.parametrize(
    "strategies", ["elastic-training", "recover,elastic-training,dump", "recover-in-place", "exit", "dump", ""]
)
def test_every_strategy_of_pytorch_is_taken(tmp_path: Path, strategies: str) -> None:
    assert messages(tmp_path, manifest(strategies)) == []


@pytest.mark.parametrize(
    ("strategies", "variables"),
    [
        ((), {}),
        (("dump",), {"HIGH_AVAILABILITY": "dump", "ELASTIC_PROCESS_RECOVER_ENABLE": "1"}),
        (("exit",), {"HIGH_AVAILABILITY": "recover", "ELASTIC_PROCESS_RECOVER_ENABLE": "1"}),
        (
            ("recover-in-place", "retry"),
            {
                "HIGH_AVAILABILITY": "recover,retry",
                "ELASTIC_PROCESS_RECOVER_ENABLE": "1",
                "ENABLE_RESTART_FAULT_PROCESS": "on",
            },
        ),
        (("elastic-training",), {"HIGH_AVAILABILITY": "elastic-training"}),
        ((" dump",), {}),
    ],
)
def test_the_environment_is_the_one_that_ascend_operator_gives(
    strategies: tuple[str, ...], variables: dict[str, str]
) -> None:
    always = {"PROCESS_RECOVER": "on", "HCCL_ASYNC_ERROR_HANDLING": "0"} if variables else {}
    assert given(strategies) == {**always, **variables}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    Master:\n", "    Scheduler:\n", "replica type Scheduler is not of PyTorch"),
        ("    Master:\n", "    Chief:\n", "there is no Master"),
        ("replicas: 1\n", "replicas: 2\n", "exactly one Master"),
        (
            "              resources: {limits: {huawei.com/Ascend910: 8}, requests: {huawei.com/Ascend910: 8}}\n",
            "",
            "Master takes no NPU",
        ),
        ('fault-scheduling: "grace"', 'fault-scheduling: "force"', "needs the label fault-scheduling"),
    ],
)
def test_what_ascend_operator_refuses_of_pytorch_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert any(said in message for message in messages(tmp_path, manifest().replace(old, new, 1)))


def test_elastic_training_needs_a_graceful_end_as_well(tmp_path: Path) -> None:
    text = manifest("elastic-training").replace('"grace"', '"force"')
    assert any("elastic-training needs the label fault-scheduling" in message for message in messages(tmp_path, text))


@pytest.mark.parametrize(
    ("strategies", "variable", "said"),
    [
        ("dump", '{name: HIGH_AVAILABILITY, value: "recover"}', "which is lost: Ascend Operator adds"),
        ("dump", '{name: PROCESS_RECOVER, value: "off"}', "PROCESS_RECOVER=on for dump"),
        ("dump", '{name: HCCL_ASYNC_ERROR_HANDLING, value: "1"}', "HCCL_ASYNC_ERROR_HANDLING=0"),
        ("recover", '{name: ENABLE_RESTART_FAULT_PROCESS, value: "on"}', "does not have recover-in-place"),
        ("", '{name: PROCESS_RECOVER, value: "on"}', "does not have any strategy"),
        ("", '{name: TASKD_PROCESS_ENABLE, value: "on"}', "there is no recover-strategy"),
        ("dump", '{name: TASKD_PROCESS_ENABLE, value: "off"}', "carries out no strategy"),
        ("retry", '{name: PYTORCH_NO_NPU_MEMORY_CACHING, value: "1"}', "must not be set"),
    ],
)
def test_a_variable_against_the_strategies_is_told(tmp_path: Path, strategies: str, variable: str, said: str) -> None:
    found = checked(tmp_path, manifest(strategies, env=variable)).problems
    assert [(said in problem.message, "name: " in problem.excerpt) for problem in found] == [(True, True)]


@pytest.mark.parametrize(
    ("strategies", "variable"),
    [
        ("dump,retry", '{name: HIGH_AVAILABILITY, value: "retry, DUMP"}'),
        ("dump", '{name: PROCESS_RECOVER, value: "on"}'),
        ("recover-in-place", '{name: ENABLE_RESTART_FAULT_PROCESS, value: "on"}'),
        ("", '{name: TASKD_PROCESS_ENABLE, value: "off"}'),
        ("dump", '{name: TASKD_PROCESS_ENABLE, value: "on"}'),
        ("dump", '{name: PYTORCH_NO_NPU_MEMORY_CACHING, value: "1"}'),
        ("dump", '{name: HCCL_CONNECT_TIMEOUT, value: "1200"}'),
    ],
)
def test_a_variable_that_agrees_with_the_strategies_is_taken(tmp_path: Path, strategies: str, variable: str) -> None:
    assert messages(tmp_path, manifest(strategies, env=variable)) == []


@pytest.mark.parametrize(
    ("strategies", "start", "said"),
    [
        ("dump", "export HIGH_AVAILABILITY=retry; ", ["exports HIGH_AVAILABILITY=retry, which replaces"]),
        ("dump", "export TASKD_PROCESS_ENABLE='off' && ", ["carries out no strategy"]),
        ("dump", "export TASKD_PROCESS_ENABLE=on; export PROCESS_RECOVER=on; ", []),
        ("dump", "export HIGH_AVAILABILITY=$MINE; ", []),
        ("", "export ELASTIC_PROCESS_RECOVER_ENABLE=1; ", ["does not have any strategy"]),
    ],
)
def test_what_the_start_command_exports_replaces_the_environment(
    tmp_path: Path, strategies: str, start: str, said: list[str]
) -> None:
    found = messages(tmp_path, manifest(strategies, start=start))
    assert len(found) == len(said)
    assert all(part in message for part, message in zip(said, found, strict=True))


@pytest.mark.parametrize(("strategies", "said"), [("recover", 1), ("elastic-training", 1), ("retry,dump", 0)])
def test_strategies_that_take_from_other_nodes_need_two(tmp_path: Path, strategies: str, said: int) -> None:
    found = messages(tmp_path, manifest(strategies, workers=0))
    assert [message for message in found if "needs two nodes" in message] == found
    assert len(found) == said


def test_ranks_of_mindspeed_look_for_the_controller_at_one_port_only(tmp_path: Path) -> None:
    other = (
        manifest("dump").replace('value: "8000"', 'value: "8100"').replace("containerPort: 8000", "containerPort: 8100")
    )
    assert all("look for it at 8000" in message for message in messages(tmp_path, other))
    assert messages(tmp_path, other)
    assert (
        messages(tmp_path, other.replace("framework: pytorch", "framework: mindspore").replace("Master", "Scheduler"))
        == []
    )


def test_a_hot_switch_gives_the_variables_of_recover(tmp_path: Path) -> None:
    text = manifest("", env='{name: PROCESS_RECOVER, value: "on"}', start="export TASKD_PROCESS_ENABLE=on; ")
    assert len(messages(tmp_path, text)) == 2
    assert (
        messages(tmp_path, text.replace("framework: pytorch,", 'framework: pytorch, subHealthyStrategy: "hotSwitch",'))
        == []
    )


def test_a_run_in_the_pods_of_a_pytorch_ascendjob_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(manifest(""), "utf-8")
    settings = Kubernetes.model_validate({"namespace": "train", "workload": "ascendjob", "manifest": "job.yaml"})
    refused = [
        problem for problem in own_problems(path, settings, Demands(nodes=2)) if "does not know" in problem.message
    ]
    assert [(problem.line, "Master and of Worker from 0" in problem.message) for problem in refused] == [(6, True)]
