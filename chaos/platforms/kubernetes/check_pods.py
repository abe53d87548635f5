"""Part of the check of a manifest: the pods of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem


@dataclass(frozen=True)
class Template:
    """Pods of one kind. ``place`` is the template, ``trains`` whether ranks run in them, ``npus`` those of one pod."""

    name: str
    place: Placed
    replicas: int
    npus: int
    trains: bool

    @property
    def container(self) -> Placed | None:
        """The container that trains: the one that is called ascend, or the only one."""
        found = list((self.place.at("spec", "containers") or self.place).each())
        named = [one for one in found if (name := one.at("name")) is not None and name.data == names.CONTAINER]
        return named[0] if named else found[0] if len(found) == 1 else None


def templates(job: Placed, workload: str) -> list[Template]:
    """The pods that a job has, by its own description."""
    if workload == "job":
        template = job.at("spec", "template")
        count = job.at("spec", "parallelism")
        return [_template("pod", template, count, trains=True)] if template is not None else []
    if workload == "vcjob":
        tasks = job.at("spec", "tasks")
        found = [(one, one.at("template")) for one in (tasks.each() if tasks is not None else ())]
        return [
            _template(_name(task), template, task.at("replicas"), trains=True)
            for task, template in found
            if template is not None
        ]
    replicas = job.at("spec", "replicaSpecs")
    specs = [(name, spec, spec.at("template")) for name, spec in (replicas.items() if replicas is not None else ())]
    return [
        _template(name, template, spec.at("replicas"), trains=name != "Scheduler" or _npus(template) > 0)
        for name, spec, template in specs
        if template is not None
    ]


def pod_problems(job: Placed, pods: Sequence[Template], strategies: Sequence[str]) -> Iterator[Problem]:
    """What in the pods keeps the job from being recovered."""
    used = [one.strip() for one in strategies]
    ports = {port: one.place for one in pods for port in _ttp_ports(one)}
    if len(ports) > 1:
        seen = ", ".join(sorted(ports))
        yield next(iter(ports.values())).problem(f"TTP_PORT must be the same in all pods, and it is {seen}")
    for one in pods:
        container = one.container
        if container is None:
            continue
        yield from _resources(container)
        yield from _policy(job, one)
        if used and one.trains:
            yield from _ports(container, used)
        if one.place.at("spec", "hostNetwork") is not None:
            yield from _host_network(job, one)


def _ttp_ports(template: Template) -> Iterator[str]:
    container = template.container
    env = container.at("env") if container is not None else None
    for one in env.each() if env is not None else ():
        name, value = one.at("name"), one.at("value")
        if name is not None and name.data == "TTP_PORT" and value is not None:
            yield str(value.data)


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
    own = job.at("spec", "replicaSpecs", template.name, "restartPolicy")
    for one in (policy, own):
        if one is not None and one.data != "Never":
            yield one.problem(
                f"restartPolicy is {one.data}: with fault-retry-times it must be Never, or the container is started "
                "again before MindCluster has seen that it failed"
            )


def _ports(container: Placed, used: Sequence[str]) -> Iterator[Problem]:
    ports = container.at("ports")
    declared = {str(port.data) for one in (ports.each() if ports else ()) if (port := one.at("containerPort"))}
    if str(names.TASKD_PORT) not in declared:
        yield (ports or container).problem(
            f"port {names.TASKD_PORT} (taskd-port), by which TaskD's parts talk, is not declared; needed for "
            f"{', '.join(used)}"
        )
    env = container.at("env")
    if not any((name := one.at("name")) is not None and name.data == "TTP_PORT" for one in (env.each() if env else ())):
        yield (env or container).problem(
            f"TTP_PORT is not in the container's environment: MindIO talks on it; needed for {', '.join(used)}"
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
    for container in (template.at("spec", "containers") or template).each():
        limits = container.at("resources", "limits")
        for key, value in limits.items() if limits is not None else ():
            if key.startswith("huawei.com/") and str(value.data).isdecimal():
                total += int(value.data)
    return total


def _name(task: Placed) -> str:
    name = task.at("name")
    return str(name.data) if name is not None else "task"
