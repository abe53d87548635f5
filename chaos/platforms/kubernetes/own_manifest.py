"""A run in the pods of the user's own manifest: its requirements for a run, and a run's additions to it.

A run adds labels, by which it finds its objects again, and the namespace where none is written. Nothing else is
changed: a manifest that cannot be run as written is refused with its line.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.check.check import Checked, Demands, check_file
from chaos.platforms.kubernetes.check.framework import framework_of
from chaos.platforms.kubernetes.check.pods import Template, templates
from chaos.platforms.kubernetes.documents import Placed, read_manifests
from chaos.platforms.kubernetes.resources import CONFIGMAP, resource_of, workload_of
from chaos.platforms.kubernetes.workload import WAIT, Manifest, Named
from chaos.scenario.errors import Problem, ScenarioError
from chaos.scenario.models.kubernetes import Kubernetes

_FOREVER = re.compile(r"(exec\s+)?(sleep\s+(infinity|[1-9]\d*d|[1-9]\d{5,}s?)|tail\s+-f\s+/dev/null)")
"""Commands that outlive every run: without an end, for days, or for 100,000 seconds and more."""
_SHELLS = ("sh", "bash")
_SHARED = ("persistentVolumeClaim", "hostPath", "nfs", "csi", "cephfs", "glusterfs", "flexVolume")
"""Volumes that this machine may see, too."""


def own_problems(path: Path, settings: Kubernetes, demands: Demands) -> tuple[Problem, ...]:
    """Return everything that keeps a run from the pods of this manifest, each with its line."""
    try:
        checked = check_file(path, demands)
        return (*checked.problems, *_run_problems(path, checked, settings, demands))
    except ScenarioError as error:
        return tuple(error.problems)


def own_objects(path: Path, settings: Kubernetes, nodes: int, named: Named) -> tuple[str, list[Manifest]]:
    """Return the job's name, and the objects as submitted: with the run's labels, and otherwise as written.

    Raises ScenarioError where the file has changed since it was planned.
    """
    if problems := own_problems(path, settings, Demands(nodes=nodes, namespace=settings.namespace)):
        raise ScenarioError(problems)
    made, job_name = [], ""
    for document in read_manifests(path):
        manifest = document.plain()
        if workload_of(manifest) is not None:
            job_name = str(manifest["metadata"]["name"])
            manifest = _marked_pods(manifest, settings.workload, nodes, named)
        metadata = manifest["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **named.labels}
        made.append(manifest)
    return job_name, sorted(made, key=lambda manifest: workload_of(manifest) is not None)


def _run_problems(path: Path, checked: Checked, settings: Kubernetes, demands: Demands) -> Iterator[Problem]:
    job = checked.job
    if checked.workload != settings.workload:
        yield job.nearest_value("kind").problem(
            f"this is a job of the kind {checked.workload}, and cluster.kubernetes.workload says {settings.workload}"
        )
        return
    framework = framework_of(job)
    if checked.workload == "ascendjob" and framework is not None and framework.leader_trains:
        yield job.nearest_value("metadata", "labels", names.FRAMEWORK).problem(
            f"a run does not know the nodes of an AscendJob of {framework.spoken}: Ascend Operator numbers the pods of "
            f"{framework.leader} and of Worker from 0, and ranks train in both",
            "check the manifest (chaos kubernetes check), and run in a vcjob or a Job",
        )
    for document in read_manifests(path):
        yield from _document(document)
    pods = templates(job, checked.workload)
    yield from _numbers(job, checked.workload, [template for template in pods if template.trains], demands.nodes or 1)
    for template in pods:
        yield from _foreign_labels(template.place)
        yield from _waits(template)
        if template.trains:
            yield from _container(template)
            yield from _volume(template, settings)


def _document(document: Placed) -> Iterator[Problem]:
    kind = document.plain()
    name = document.at("metadata", "name")
    if workload_of(kind) is None and resource_of(kind) != CONFIGMAP:
        yield document.nearest_value("kind").problem(
            f"a run makes the job and ConfigMaps, and no {kind.get('kind')}",
            "make it beforehand, and take it out of this file",
        )
    if name is None or not isinstance(name.data, str) or not name.data:
        yield document.nearest_value("metadata", "name").problem("it has no metadata.name, by which it would be found")
    yield from _foreign_labels(document)


def _foreign_labels(place: Placed) -> Iterator[Problem]:
    labels = place.at("metadata", "labels")
    if labels is not None and labels.data is not None and not isinstance(labels.data, dict):
        yield labels.problem("labels are a mapping of names to texts")
    for key, value in labels.items() if labels is not None else ():
        if key.startswith(f"{names.PREFIX}/"):
            yield value.problem(f"label {key} is what runs are found by: it is added by the run itself", "leave it out")


def _waits(pod: Template) -> Iterator[Problem]:
    """Yield pods that train by themselves: the run starts the launcher in the pod, so it would train twice."""
    container = pod.container
    if container is None:
        return
    parts = [container.at(key) for key in ("command", "args")]
    argv = [str(value.data) for part in parts if part is not None for value in part.values()]
    if parts[0] is None or not _is_waiting(argv):
        program = "what the image says" if parts[0] is None else repr(" ".join(argv))
        yield (parts[0] or container).problem(
            f"pod {pod.name} runs {program}: the run starts the training itself, so its pods have to wait",
            'command: [sleep, infinity], or ["sh", "-c", "sleep infinity"]',
        )


def _is_waiting(argv: Sequence[str]) -> bool:
    if tuple(argv) == WAIT:
        return True
    if len(argv) == 3 and PurePosixPath(argv[0]).name in _SHELLS and argv[1] == "-c":
        return _FOREVER.fullmatch(argv[2].strip()) is not None
    return _FOREVER.fullmatch(" ".join((PurePosixPath(argv[0]).name, *argv[1:])) if argv else "") is not None


def _container(pod: Template) -> Iterator[Problem]:
    listed = pod.place.nearest_value("spec", "containers")
    trainers = [
        value for value in listed.values() if (name := value.at("name")) is not None and name.data == names.CONTAINER
    ]
    if len(trainers) != 1:
        yield listed.problem(
            f"no container of pod {pod.name} is called {names.CONTAINER}: that is the one in which the run works"
        )


def _volume(pod: Template, settings: Kubernetes) -> Iterator[Problem]:
    container = pod.container
    if container is None or settings.volume is None:
        return
    mount_point = PurePosixPath(settings.volume.path)
    sources = {
        str(name.data): [key for key, _ in value.items() if key != "name"]
        for value in (pod.place.at("spec", "volumes") or container).values()
        if (name := value.at("name")) is not None
    }
    mounts = container.at("volumeMounts")
    for mount in mounts.values() if mounts is not None else ():
        at, name = mount.at("mountPath"), mount.at("name")
        if at is None or name is None or not mount_point.is_relative_to(str(at.data)):
            continue
        if any(key in _SHARED for key in sources.get(str(name.data), ())) and mount.at("subPath") is None:
            return
    yield (mounts or container).problem(
        f"pod {pod.name} mounts no shared volume at {mount_point} (cluster.kubernetes.volume), so it would not see the "
        "run's directory"
    )


def _numbers(job: Placed, workload: str, pods: Sequence[Template], nodes: int) -> Iterator[Problem]:
    """Yield a problem unless the number of each pod's node can be determined."""
    if workload == "vcjob" and len(pods) > 1 and any(template.replicas != 1 for template in pods):
        yield job.nearest_value("spec", "tasks").problem(
            "several tasks train, and one of them has more than one pod: the mapping of pods to nodes is unknown",
            "give each of them one pod, or all pods to one task",
        )
    mode = job.at("spec", "completionMode")
    if workload == "job" and nodes > 1 and (mode is None or mode.data != "Indexed"):
        yield (mode or job.nearest_value("spec", "parallelism")).problem(
            "the pods of this Job have no index, so the mapping of pods to nodes is unknown",
            "completionMode: Indexed (Kubernetes 1.21), a vcjob or an AscendJob",
        )


def _marked_pods(manifest: Manifest, workload: str, nodes: int, named: Named) -> Manifest:
    """Return the job with the labels on its pods; the number of the node where one template makes one pod."""
    made: dict[str, Any] = copy.deepcopy(manifest)
    spec = made["spec"]
    if workload == "job":
        listed = [spec["template"]]
        numbered = nodes == 1
    elif workload == "vcjob":
        listed = [task["template"] for task in spec["tasks"] if "template" in task]
        numbered = all(task.get("replicas", 1) == 1 for task in spec["tasks"])
    else:  # Ascend Operator numbers the pods
        listed = [candidate["template"] for candidate in spec["replicaSpecs"].values() if "template" in candidate]
        numbered = False
    for node, template in enumerate(listed):
        metadata = template["metadata"] = dict(template.get("metadata") or {})
        number = {names.NODE_LABEL: str(node)} if numbered else {}
        metadata["labels"] = {**(metadata.get("labels") or {}), **named.labels, **number}
    return made
