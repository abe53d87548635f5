"""Part of the check of a manifest: the pods of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem

_GRACE_OVER_TIME = 900
"""Seconds (MindCluster, the installation of Volcano, ``grace-over-time``)."""


@dataclass(frozen=True)
class Template:
    """Pods of one kind.

    ``place`` is the template, ``trains`` whether ranks run in them, ``npus`` the NPUs of one pod.
    """

    name: str
    place: Placed
    replicas: int
    npus: int
    trains: bool

    @property
    def container(self) -> Placed | None:
        """The container that trains: the container called ascend, or the only one."""
        containers = list((self.place.at("spec", "containers") or self.place).values())
        named = [
            value for value in containers if (name := value.at("name")) is not None and name.data == names.CONTAINER
        ]
        return named[0] if named else containers[0] if len(containers) == 1 else None


def templates(job: Placed, workload: str) -> list[Template]:
    """Return the pods that a job describes."""
    if workload == "job":
        template = job.at("spec", "template")
        count = job.at("spec", "parallelism")
        return [_template("pod", template, count, trains=True)] if template is not None else []
    if workload == "vcjob":
        tasks = job.at("spec", "tasks")
        pairs = [(task, task.at("template")) for task in (tasks.values() if tasks is not None else ())]
        return [
            _template(_name(task), template, task.at("replicas"), trains=True)
            for task, template in pairs
            if template is not None
        ]
    replicas = job.at("spec", "replicaSpecs")
    specs = [(name, spec, spec.at("template")) for name, spec in (replicas.items() if replicas is not None else ())]
    return [
        _template(name, template, spec.at("replicas"), trains=name != "Scheduler" or _npus(template) > 0)
        for name, spec, template in specs
        if template is not None
    ]


def pod_problems(job: Placed, pods: Sequence[Template]) -> Iterator[Problem]:
    """Yield what in the pods keeps the job from being recovered."""
    yield from _selectors(pods)
    for template in pods:
        yield from _grace(job, template)
        container = template.container
        if container is None:
            continue
        yield from _resources(container)
        yield from _policy(job, template)
        if template.place.at("spec", "hostNetwork") is not None:
            yield from _host_network(job, template)


def _selectors(pods: Sequence[Template]) -> Iterator[Problem]:
    """Yield different node selectors: pods of one job that ask for different nodes cannot be rescheduled.

    Source: MindCluster, FAQ.
    """
    selectors = [(template, template.place.at("spec", "nodeSelector")) for template in pods]
    first, asked = next(((template, place) for template, place in selectors if place is not None), (None, None))
    if first is None or asked is None:
        return
    for other, place in selectors:
        selector = {} if place is None else place.plain()
        if other is not first and selector != asked.plain():
            yield (place or other.place).problem(
                f"nodeSelector of {other.name} is {selector or 'not there'}, "
                f"and that of {first.name} is {asked.plain()}: "
                "with different ones MindCluster cannot reschedule the job"
            )


def _grace(job: Placed, template: Template) -> Iterator[Problem]:
    """Yield a grace period that Volcano cuts short: a checkpoint is saved between SIGTERM and SIGKILL.

    Volcano waits for it no longer than grace-over-time.
    """
    place = template.place.at("spec", "terminationGracePeriodSeconds")
    scheduling = job.at("metadata", "labels", names.FAULT_SCHEDULING)
    if place is None or scheduling is None or scheduling.data != "grace" or type(place.data) is not int:
        return
    # The document asks for less than grace-over-time; the vendor's own manifests use exactly grace-over-time.
    if not 0 < place.data <= _GRACE_OVER_TIME:
        yield place.problem(
            f"terminationGracePeriodSeconds is {place.data}: with fault-scheduling: grace it must be larger than 0 and "
            f"no longer than Volcano's grace-over-time, which is {_GRACE_OVER_TIME} unless the cluster sets another"
        )


def _resources(container: Placed) -> Iterator[Problem]:
    limits, requests = container.at("resources", "limits"), container.at("resources", "requests")
    for key in sorted({key for part in (limits, requests) if part for key, _ in part.items()}):
        if not key.startswith("huawei.com/"):
            continue
        limit, request = (part.at(key) if part is not None else None for part in (limits, requests))
        if limit is None or request is None or str(limit.data) != str(request.data):
            place = limit or request
            assert place is not None
            yield place.problem(f"{key} must be the same in limits and in requests")


def _policy(job: Placed, template: Template) -> Iterator[Problem]:
    retries = job.at("metadata", "labels", names.FAULT_RETRY_TIMES)
    if retries is None or str(retries.data) == "0":
        return
    policy = template.place.at("spec", "restartPolicy")
    replica_policy = job.at("spec", "replicaSpecs", template.name, "restartPolicy")
    for value in (policy, replica_policy):
        if value is not None and value.data != "Never":
            yield value.problem(
                f"restartPolicy is {value.data}: with fault-retry-times it must be Never, or the container is started "
                "again before MindCluster has seen that it failed"
            )


def _host_network(job: Placed, template: Template) -> Iterator[Problem]:
    place = template.place.at("spec", "hostNetwork")
    scheduling = job.at("metadata", "labels", names.FAULT_SCHEDULING)
    rescheduling = job.at("metadata", "labels", names.POD_RESCHEDULING)
    forced = scheduling is not None and scheduling.data == "force"
    if place is not None and place.data is True and forced and rescheduling is not None and rescheduling.data == "on":
        yield place.problem("with pod-rescheduling and fault-scheduling: force a pod cannot use the host's network")


def _template(name: str, template: Placed, replicas: Placed | None, *, trains: bool) -> Template:
    count = replicas.data if replicas is not None and isinstance(replicas.data, int) else 1
    return Template(name, template, count, _npus(template), trains)


def _npus(template: Placed) -> int:
    total = 0
    for container in (template.at("spec", "containers") or template).values():
        limits = container.at("resources", "limits")
        for key, value in limits.items() if limits is not None else ():
            if key.startswith("huawei.com/") and str(value.data).isdecimal():
                total += int(value.data)
    return total


def _name(task: Placed) -> str:
    name = task.at("name")
    return str(name.data) if name is not None else "task"
