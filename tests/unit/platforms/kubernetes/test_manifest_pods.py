"""What MindCluster or the API would fail at in a job's pods is told with its line, and what they take is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.platforms.kubernetes.check.check import check_file
from chaos.platforms.kubernetes.check.commands import lost_exit_code
from tests.unit.platforms.kubernetes.test_manifest_check import ASCENDJOB, checked

CONTAINER = "            - name: ascend\n"
POD = "        spec:\n          containers:\n"
ADDRESS = "                - name: POD_IP\n                  valueFrom: {fieldRef: {fieldPath: status.podIP}}\n"
FROM_HOST = "                - {name: HCCL_IF_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}\n"

VCJOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: llama
  labels: {fault-scheduling: "grace", fault-retry-times: "3", process-recover-enable: "on"}
  annotations: {recover-strategy: "recover,dump"}
spec:
  minAvailable: 2
  policies:
    - {event: PodFailed, action: Ignore}
  tasks:
    - name: worker
      replicas: 2
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: ascend
              image: train:1
              env:
                - {name: TTP_PORT, value: "8000"}
                - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
              ports: [{containerPort: 8000, name: ttp-port}, {containerPort: 9601}]
              resources: {limits: {huawei.com/Ascend910: 8}, requests: {huawei.com/Ascend910: 8}}
"""


def problems(directory: Path, text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in checked(directory, text).problems]


def worker(old: str, new: str) -> str:
    """The manifest with a change in its Worker alone, whose ranks have NPUs."""
    scheduler, name, rest = ASCENDJOB.partition("    Worker:\n")
    assert old in rest
    return scheduler + name + rest.replace(old, new, 1)


WRONG = [
    (
        "a variable that is a number",
        'value: "8000"',
        "value: 8000",
        "value: 8000",
        "the variable TTP_PORT is a number (8000)",
    ),
    (
        "a variable that is a switch",
        'value: "8000"',
        "value: on",
        "value: on",
        "the variable TTP_PORT is a boolean (on)",
    ),
    (
        "a word of a command",
        "image: train:1",
        "image: train:1\n              args: [3]",
        "args: [3]",
        "a word of args is a number",
    ),
    (
        "a port that is text",
        "containerPort: 8000",
        'containerPort: "8000"',
        "containerPort:",
        "it must be a whole number",
    ),
    (
        "a node that is chosen by a number",
        POD,
        "        spec:\n          nodeSelector: {a: 1}\n          containers:\n",
        "nodeSelector: {a: 1}",
        "the label a of nodeSelector is a number",
    ),
    ("no address of its own", ADDRESS, "", "env:", "POD_IP is not in the environment of Worker"),
    ("the host's address", "status.podIP", "status.hostIP", "valueFrom", "POD_IP is not the pod's own address"),
    (
        "the host's network",
        POD,
        "        spec:\n          hostNetwork: true\n          containers:\n",
        "hostNetwork",
        "HCCL must be told its address by HCCL_IF_IP",
    ),
    (
        "a switch that is text",
        POD,
        "        spec:\n          hostNetwork: 'yes'\n          containers:\n",
        "hostNetwork",
        "it must be true or false",
    ),
    (
        "another port",
        "- containerPort: 8000",
        "- {containerPort: 8001, name: ttp-port}",
        "containerPort: 8001",
        "the port ttp-port is 8001, and TTP_PORT is 8000",
    ),
    (
        "other nodes",
        POD,
        "        spec:\n          nodeSelector: {a: b}\n          containers:\n",
        "template:",
        "nodeSelector of Scheduler is not there, and that of Worker is {'a': 'b'}",
    ),
    (
        "no time to save",
        POD,
        "        spec:\n          terminationGracePeriodSeconds: 0\n          containers:\n",
        "terminationGrace",
        "terminationGracePeriodSeconds is 0",
    ),
    (
        "too long to wait",
        POD,
        "        spec:\n          terminationGracePeriodSeconds: 901\n          containers:\n",
        "terminationGrace",
        "no longer than Volcano's grace-over-time, which is 900",
    ),
    (
        "a pipe",
        "image: train:1",
        "image: train:1\n              command: [/bin/bash, -c, 'msrun a.py | tee log']",
        "tee log",
        "for a pipe the shell returns the code of its last command, `tee`",
    ),
]


@pytest.mark.parametrize(("old", "new", "line", "said"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_fails_in_a_pod_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: str, said: str) -> None:
    text = worker(old, new)
    found = problems(tmp_path, text)
    (number,) = [number for number, message in found if said in message]
    assert line in text.splitlines()[number - 1], found


GOOD = [
    (
        "the host's network with the host's address",
        POD,
        "        spec:\n          hostNetwork: true\n          containers:\n",
        ADDRESS,
        ADDRESS + FROM_HOST,
    ),
    (
        "as long as grace-over-time",
        POD,
        "        spec:\n          terminationGracePeriodSeconds: 900\n          containers:\n",
        "",
        "",
    ),
    (
        "a pipe whose code counts",
        "image: train:1",
        "image: train:1\n              command: [bash, -c, 'set -o pipefail; msrun a.py | tee log']",
        "",
        "",
    ),
    ("the port by its name", "- containerPort: 8000", "- {containerPort: 8000, name: ttp-port}", "", ""),
]


@pytest.mark.parametrize(("changes"), [case[1:] for case in GOOD], ids=[case[0] for case in GOOD])
def test_what_a_pod_may_have_is_no_problem(tmp_path: Path, changes: tuple[str, str, str, str]) -> None:
    old, new, other, another = changes
    scheduler, name, rest = ASCENDJOB.partition("    Worker:\n")
    text = scheduler + name + rest.replace(old, new, 1).replace(other, another, 1)
    assert problems(tmp_path, text) == []


def test_the_same_in_several_pods_is_one_problem_with_both_lines(tmp_path: Path) -> None:
    found = problems(tmp_path, ASCENDJOB.replace('value: "8000"', "value: 8000"))
    assert [line for line, _ in found] == [30]
    assert found[0][1].endswith("(as in line 46)")


def test_as_many_retries_as_the_vendor_takes_are_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, ASCENDJOB.replace('fault-retry-times: "3"', 'fault-retry-times: "10000"')) == []


def test_a_list_and_merge_keys_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    indented = "".join(f"  {line}" for line in ASCENDJOB.splitlines(keepends=True))
    as_list = "apiVersion: v1\nkind: List\nitems:\n-" + indented[1:]
    assert problems(tmp_path, as_list) == []
    wrong = problems(tmp_path, as_list.replace('value: "8000"', "value: 8000"))
    assert [line for line, _ in wrong] == [33]
    merged = ASCENDJOB.replace("  labels:\n", "  labels:\n    <<: [&a {team: a, framework: pytorch}, {team: b}]\n")
    (tmp_path / "merged.yaml").write_text(merged)
    found = check_file(tmp_path / "merged.yaml")
    assert found.problems == ()
    labels = found.job.at("metadata", "labels")
    assert labels is not None
    assert (labels.plain()["team"], labels.plain()["framework"]) == ("a", "mindspore")


def test_a_volcano_job_leaves_the_restart_to_mindcluster(tmp_path: Path) -> None:
    assert problems(tmp_path, VCJOB) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("action: Ignore", "action: RestartJob", 9, "policies say PodFailed with RestartJob; with fault-retry-times"),
        ("event: PodFailed, action: Ignore", "event: PodEvicted", 9, "policies say PodEvicted with RestartJob"),
        ("  policies:\n    - {event: PodFailed, action: Ignore}\n", "", 7, "policies say nothing"),
        ('fault-retry-times: "3"', 'pod-rescheduling: "on"', 9, "there must be none"),
        (
            "annotations: {",
            'annotations: {huawei.com/recover_policy_path: "pod", ',
            9,
            "PodFailed with RestartTask alone",
        ),
    ],
)
def test_policies_by_which_volcano_acts_beside_mindcluster_are_told(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in VCJOB
    found = problems(tmp_path, VCJOB.replace(old, new, 1))
    assert [number for number, message in found if said in message] == [line], found


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("msrun train.py | tee log", "tee"),
        ("cd /job && bash run.sh 2>&1 | tee -a log", "tee"),
        ("set -e; msrun train.py |& tee log", "tee"),
        ("msrun train.py; echo done", "echo"),
        ("bash run.sh\nsleep 10", "sleep"),
        ("msrun train.py || true", "true"),
    ],
)
def test_a_command_that_takes_the_jobs_exit_code_away_is_named(script: str, command: str) -> None:
    why = lost_exit_code(script)
    assert why is not None
    assert command in why


@pytest.mark.parametrize(
    "script",
    [
        "msrun train.py",
        "cd /job; chmod +x run.sh; bash run.sh",
        "set -o pipefail; msrun train.py | tee log",
        "set -euo pipefail\nmsrun train.py | tee log",
        "msrun train.py 2>&1 | tee log; exit ${PIPESTATUS[0]}",
        "set -e; msrun train.py; echo done",
        "msrun train.py && echo done",
        "echo 'a | b; sleep 3'",
        "msrun 'open quote",
        "",
    ],
)
def test_a_command_that_keeps_the_jobs_exit_code_is_no_problem(script: str) -> None:
    assert lost_exit_code(script) is None
