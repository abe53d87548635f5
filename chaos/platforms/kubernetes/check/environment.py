"""Part of the check of a manifest: the environment of the job's containers, and their ports.

Ascend Operator sets up much of a container's environment (``env.go``), but none of the variables here: the job brings
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.check.pods import Template
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem

_TTP_PORT = "TTP_PORT"
_TTP_PORT_NAME = "ttp-port"
_POD_IP = "POD_IP"
_HCCL_ADDRESS = ("HCCL_IF_IP", "HCCL_SOCKET_IFNAME")


def environment_problems(pods: Sequence[Template], strategies: Sequence[str]) -> Iterator[Problem]:
    """Yield the variables that the training containers lack for the strategies used, and for the host's network."""
    yield from _one_port(pods)
    for pod in pods:
        container = pod.container
        if container is None:
            continue
        yield from _port_agrees(container)
        if strategies and pod.trains:
            yield from _ports(container, strategies)
            yield from _pod_ip(pod, container, strategies)
        yield from _host_address(pod, container)


def _one_port(pods: Sequence[Template]) -> Iterator[Problem]:
    ports = {
        str(value.data): pod.place
        for pod in pods
        if pod.container is not None and (value := _variable(pod.container, _TTP_PORT, "value")) is not None
    }
    if len(ports) > 1:
        values = ", ".join(sorted(ports))
        yield next(iter(ports.values())).problem(f"TTP_PORT must be the same in all pods, and it is {values}")


def _port_agrees(container: Placed) -> Iterator[Problem]:
    """Yield a problem unless ttp-port is the number of TTP_PORT (MindCluster, process-level recovery)."""
    value = _variable(container, _TTP_PORT, "value")
    for declared in _each(container, "ports"):
        name, number = declared.at("name"), declared.at("containerPort")
        if name is None or name.data != _TTP_PORT_NAME or number is None or value is None:
            continue
        if str(number.data) != str(value.data):
            yield number.problem(
                f"the port ttp-port is {number.data}, and TTP_PORT is {value.data}: both must be the same"
            )


def _ports(container: Placed, used: Sequence[str]) -> Iterator[Problem]:
    declared = {str(port.data) for value in _each(container, "ports") if (port := value.at("containerPort"))}
    if str(names.TASKD_PORT) not in declared:
        yield container.nearest_value("ports").problem(
            f"port {names.TASKD_PORT} (taskd-port), by which TaskD's parts talk, is not declared; needed for "
            f"{', '.join(used)}"
        )
    if _variable(container, _TTP_PORT) is None:
        yield container.nearest_value("env").problem(
            f"TTP_PORT is not in the container's environment: MindIO talks on it; needed for {', '.join(used)}"
        )


def _pod_ip(pod: Template, container: Placed, used: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem without POD_IP: TaskD's manager ends (``taskd/python/framework/manager/controller.py``)."""
    variable = _variable(container, _POD_IP)
    source = _field_of(container, _POD_IP)
    if variable is None or (source is not None and source.data != "status.podIP"):
        lack = "is not in" if variable is None else "is not the pod's own address in"
        yield (source or variable or container.nearest_value("env")).problem(
            f"POD_IP {lack} the environment of {pod.name}: TaskD listens there, and no process is recovered without "
            f"it; needed for {', '.join(used)}",
            "- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}",
        )


def _host_address(pod: Template, container: Placed) -> Iterator[Problem]:
    """Yield a problem where HCCL lacks the host's address on the host's network.

    Source: MindCluster, the page on a job's YAML.
    """
    place = pod.place.at("spec", "hostNetwork")
    if place is None or place.data is not True or not pod.npus:
        return
    if not any(_variable(container, name) is not None for name in _HCCL_ADDRESS):
        yield place.problem(
            "with hostNetwork HCCL must be told its address by HCCL_IF_IP, and the container does not have it: links "
            "between the ranks would time out",
            "- {name: HCCL_IF_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}",
        )
    source = _field_of(container, _HCCL_ADDRESS[0])
    if source is not None and source.data != "status.hostIP":
        yield source.problem(f"HCCL_IF_IP is {source.data}: with hostNetwork it must be status.hostIP")


def _field_of(container: Placed, name: str) -> Placed | None:
    """Return the pod's field that a variable has its value from."""
    return _variable(container, name, "valueFrom", "fieldRef", "fieldPath")


def _variable(container: Placed, name: str, *part: str) -> Placed | None:
    """Return a variable of the environment, or a part of its entry."""
    for entry in _each(container, "env"):
        name_value = entry.at("name")
        if name_value is not None and name_value.data == name:
            return entry.at(*part) if part else entry
    return None


def _each(container: Placed, part: str) -> Iterator[Placed]:
    values = container.at(part)
    yield from values.values() if values is not None else ()
