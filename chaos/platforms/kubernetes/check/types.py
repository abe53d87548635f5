"""Part of the check of a manifest: values of another type than the API takes, for which the cluster refuses an object.

Source: the Kubernetes API, ``core/v1`` (EnvVar.value, Container.command and args, PodSpec.nodeSelector are text;
containerPort, replicas and seconds are numbers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.platforms.kubernetes.check.pods import Template
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem

_CONTAINERS = ("initContainers", "containers")


def type_problems(pods: Sequence[Template]) -> Iterator[Problem]:
    """Yield values in the pods that are not text where the API takes only text, or not numbers where it needs them."""
    for pod in pods:
        spec = pod.place.at("spec")
        if spec is None:
            continue
        selector = spec.at("nodeSelector")
        for key, value in selector.items() if selector is not None else ():
            yield from _text(value, f"the label {key} of nodeSelector")
        yield from _number(spec.at("terminationGracePeriodSeconds"), "terminationGracePeriodSeconds")
        yield from _switch(spec.at("hostNetwork"), "hostNetwork")
        for containers in (spec.at(part) for part in _CONTAINERS):
            for container in containers.values() if containers is not None else ():
                yield from _container(container)


def _container(container: Placed) -> Iterator[Problem]:
    for entry in _each(container, "env"):
        name, value = entry.at("name"), entry.at("value")
        yield from _text(value, f"the variable {name.data if name is not None else '(without a name)'}")
    for part in ("command", "args"):
        for word in _each(container, part):
            yield from _text(word, f"a word of {part}")
    for entry in _each(container, "ports"):
        yield from _number(entry.at("containerPort"), "containerPort")


def as_written(data: object) -> str:
    """Return a value that YAML read as a boolean or a number as its writer meant it."""
    return {True: "on", False: "off"}.get(data, str(data)) if isinstance(data, bool) else str(data)


def _text(value: Placed | None, what: str) -> Iterator[Problem]:
    if value is None or value.data is None or isinstance(value.data, str):
        return
    kind = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a mapping"}
    type_name = f"{kind.get(type(value.data), 'no text')}"
    plain = not isinstance(value.data, (dict, list))
    shown = f" ({as_written(value.data)})" if plain else ""
    yield value.problem(
        f"{what} is {type_name}{shown}; it must be text, or the cluster refuses the job",
        f'write it in quotes: "{as_written(value.data)}"' if plain else "",
    )


def _number(value: Placed | None, what: str) -> Iterator[Problem]:
    if value is not None and (isinstance(value.data, bool) or not isinstance(value.data, int)):
        yield value.problem(f"{what} is {value.data!r}; it must be a whole number, or the cluster refuses the job")


def _switch(value: Placed | None, what: str) -> Iterator[Problem]:
    if value is not None and not isinstance(value.data, bool):
        yield value.problem(f"{what} is {value.data!r}; it must be true or false, or the cluster refuses the job")


def _each(container: Placed, part: str) -> Iterator[Placed]:
    values = container.at(part)
    yield from values.values() if values is not None else ()
