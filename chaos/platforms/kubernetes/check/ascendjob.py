"""Part of the check of a manifest: Ascend Operator's demands on an AscendJob, besides the recovery.

Source: ``ascend-operator/pkg/controllers/v1/ascendjob_validate.go``.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.check.framework import FRAMEWORKS, Framework, framework_of
from chaos.platforms.kubernetes.check.pods import Template, templates
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem, suggest

_MOST_REPLICAS = 20_000


def ascendjob_problems(job: Placed) -> Iterator[Problem]:
    """Yield what Ascend Operator refuses, or does otherwise than the manifest intends."""
    known = " and ".join(framework.spoken for framework in FRAMEWORKS.values())
    label = job.at("metadata", "labels", names.FRAMEWORK)
    if label is None:
        yield job.nearest_value("metadata", "labels").problem(
            "there is no label framework, so Ascend Operator does not know what to set up",
            " or ".join(f"framework: {name}" for name in FRAMEWORKS),
        )
    elif label.data not in FRAMEWORKS:
        yield label.problem(
            f"framework is {label.data}: this check knows jobs of {known}", suggest(str(label.data), FRAMEWORKS)
        )
    policy = job.at("spec", "successPolicy")
    if policy is not None and policy.data not in ("", "AllWorkers"):
        yield policy.problem(f"successPolicy is {policy.data!r}: AllWorkers or nothing is allowed")
    replicas = job.at("spec", "replicaSpecs")
    if replicas is None or not list(replicas.items()):
        yield job.nearest_value("spec", "replicaSpecs").problem("spec.replicaSpecs is empty: the job has no pods")
        return
    # A job without the label is read as one of MindSpore, so that the rest of it is checked as well.
    framework = framework_of(job) or FRAMEWORKS[names.MINDSPORE]
    for name, spec in replicas.items():
        yield from _replica(name, spec, framework)
    pods = templates(job, "ascendjob")
    yield from _leader(replicas, pods, framework)
    least = job.at("spec", "runPolicy", "schedulingPolicy", "minAvailable")
    total = sum(template.replicas for template in pods)
    if least is not None and isinstance(least.data, int) and least.data > total:
        yield least.problem(f"minAvailable is {least.data}, but the job has {total} pods: it would never start")


def _leader(replicas: Placed, pods: list[Template], framework: Framework) -> Iterator[Problem]:
    """Yield the lack of the leader, and a leader that has to train and takes no NPU."""
    leader = framework.leader
    if leader not in dict(replicas.items()):
        if framework.leads_alone is None:
            yield replicas.problem(
                f"there is no {leader}: {framework.spoken}'s ranks find each other through it, and Ascend Operator "
                "refuses the job",
                f"write the first node's pod as {leader}, and the others as Worker",
            )
        elif sum(template.replicas * template.npus for template in pods) > 1:
            yield replicas.problem(f"there is no {leader}: {framework.leads_alone}")
    for template in pods:
        if framework.leader_trains and template.name in framework.types and not template.npus:
            yield template.place.problem(f"{template.name} takes no NPU, and Ascend Operator refuses such a pod")


def _replica(name: str, spec: Placed, framework: Framework) -> Iterator[Problem]:
    if name not in framework.types:
        yield spec.problem(f"replica type {name} is not of {framework.spoken}", suggest(name, framework.types, "types"))
        return
    count = spec.at("replicas")
    if count is not None and (not isinstance(count.data, int) or not 0 <= count.data <= _MOST_REPLICAS):
        yield count.problem(f"replicas is {count.data}: it must be a number from 0 to {_MOST_REPLICAS}")
    elif name == framework.leader and count is not None and count.data != 1:
        yield count.problem(f"there must be exactly one {name}, not {count.data}")
    containers = spec.at("template", "spec", "containers")
    listed = list(containers.values()) if containers is not None else []
    named = [
        value
        for value in listed
        if (container_name := value.at("name")) is not None and container_name.data == names.CONTAINER
    ]
    if not named:
        yield spec.nearest_value("template", "spec", "containers").problem(
            f"no container of {name} is called {names.CONTAINER}: Ascend Operator sets up no other"
        )
    for value in named:
        image = value.at("image")
        if image is None or not image.data:
            yield value.problem(f"container {names.CONTAINER} of {name} has no image")
