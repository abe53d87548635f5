"""Names that MindCluster, Volcano and this harness use in a cluster.

Source of MindCluster's names, where no other is given: its sources and documents of August 2026 (branch master, 26.1),
``ascend-common/api/consts.go``, ``clusterd/pkg/common/constant`` and the page on the keys of a job's YAML.
"""

from __future__ import annotations

import hashlib
from typing import Final

PREFIX: Final = "chaos-ascend.io"
RUN_LABEL: Final = f"{PREFIX}/run"
"""Label of everything that a run makes, with its identity; nothing without it is ever changed."""

NODE_LABEL: Final = f"{PREFIX}/node"
"""Label of a pod: the number of the scenario's node that it is."""

HELD_ANNOTATION: Final = f"{PREFIX}/held-by"
"""On a cluster's node that a fault has changed: the run that has to put it back."""

HELD_FOR_ANNOTATION: Final = f"{PREFIX}/held-for"
"""On the same node: the faults that have changed it, and the parts that each has changed, as JSON."""

BEFORE_ANNOTATION: Final = f"{PREFIX}/held-before"
"""On the same node: the parts that the run has changed, and their values before, as JSON."""

CONTAINER: Final = "ascend"
"""The container that trains: Ascend Operator knows it by this name only."""

MINDSPORE: Final = "mindspore"
PYTORCH: Final = "pytorch"
FRAMEWORK: Final = "framework"
RANK_INDEX: Final = "hccl/rankIndex"
"""Annotation of a pod: its index among the job's pods."""

REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
"""Label of a pod that Ascend Operator has made: ``worker`` or ``scheduler`` (``ascend-operator``, ``labels.go``)."""

SCHEDULER: Final = "scheduler"
SCHEDULER_ROLE: Final = "MS_SCHED"
"""MindSpore's scheduler as a replica type, and as MS_ROLE of its container (``ascend-operator``, ``env.go``)."""

NPU_PREFIX: Final = "huawei.com/"
"""Beginning of the names of resources that are NPUs."""

COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Annotation of a pod of an indexed Job (Kubernetes, the page on Jobs)."""

TASK_INDEX: Final = "volcano.sh/task-index"
"""Label, and annotation, of a pod of a Volcano job: its number in its task (Volcano, ``batch/v1alpha1/labels.go``)."""

RECOVER_STRATEGY: Final = "recover-strategy"
PROCESS_RECOVER: Final = "process-recover-enable"
POD_RESCHEDULING: Final = "pod-rescheduling"
FAULT_SCHEDULING: Final = "fault-scheduling"
FAULT_RETRY_TIMES: Final = "fault-retry-times"
SUB_HEALTHY: Final = "subHealthyStrategy"
WAIT_RESCHEDULE: Final = "wait-reschedule-timeout"
RECOVER_POLICY: Final = "huawei.com/recover_policy_path"

STRATEGIES: Final = ("retry", "recover", "recover-in-place", "elastic-training", "dump", "exit")
PROCESS_LEVEL: Final = ("retry", "recover", "recover-in-place")
"""Strategies that keep processes, and need ``fault-scheduling: grace`` and ``fault-retry-times``."""

GRACEFUL: Final = (*PROCESS_LEVEL, "elastic-training")
"""Strategies that need ``fault-scheduling: grace``."""

TASKD_PORT: Final = 9601
TTP_PORT: Final = 8000

RANK_TABLE_PREFIX: Final = "rings-config-"
RANK_TABLE_KEY: Final = "hccl.json"
RESET_PREFIX: Final = "reset-config-"

PUBLIC_FAULT_LABEL: Final = "mc-consumer-publicfault"
PUBLIC_FAULT_KEY: Final = "PublicFault"
PUBLIC_FAULT_PREFIX: Final = "chaos-fault-"
"""Beginning of the names of ConfigMaps in which a run tells ClusterD of its faults."""

RECOVERY_ANNOTATIONS: Final = (
    "ProcessRecoverStrategy",
    "ProcessConfirmFault",
    "ProcessResultFault",
    "ProcessRecoverStatus",
)
"""Annotations of a PodGroup by which ClusterD steers a recovery."""

FAULT_CONFIGMAPS: Final = (
    "cluster-info-device-",
    "cluster-info-node-cm",
    "cluster-info-switch-",
    "job-reschedule-reason",
    "mindx-dl-deviceinfo-",
    "mindx-dl-nodeinfo-",
    "statistic-fault-info",
    "reset-config-",
    "fault-job-info",
)
"""Names, or beginnings of names, of the ConfigMaps in which MindCluster shows faults and its response to them."""


def run_digest(run: str) -> str:
    """Return a run's identity as part of an object's name: two runs in one namespace must not make equal names."""
    return hashlib.sha256(run.encode()).hexdigest()[:10]
