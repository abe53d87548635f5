"""Manifests as they are written: YAML documents with the place of every value, read as Kubernetes reads them.

``on`` is true there, as in YAML 1.1, so a label written without quotes is not text any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chaos.scenario.errors import Problem, ScenarioError
from chaos.scenario.source import Source, read_source
from chaos.scenario.yaml_nodes import MAX_DEPTH, explain

MAX_BYTES = 1 << 20
"""Largest file of manifests: the largest size of one object in a cluster."""

MAX_VALUES = 50_000
"""Most values of a file, each alias counted with everything that it stands for."""

_SCALARS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp"))


@dataclass(frozen=True)
class Placed:
    """A value and the place of the value, or of its key. ``data`` is a scalar, a list or a dict of placed values."""

    data: Any
    source: Source
    line: int
    column: int
    text: str = ""

    def plain(self) -> Any:
        """Return the data without places."""
        if isinstance(self.data, dict):
            return {key: value.plain() for key, value in self.data.items()}
        if isinstance(self.data, list):
            return [part.plain() for part in self.data]
        return self.data

    def at(self, *path: str | int) -> Placed | None:
        """Return the value at a path of keys and indices; None where there is none."""
        value: Placed | None = self
        for step in path:
            if value is None:
                return None
            if isinstance(value.data, dict):
                value = value.data.get(step)
            elif isinstance(value.data, list) and isinstance(step, int) and step < len(value.data):
                value = value.data[step]
            else:
                return None
        return value

    def items(self) -> Iterator[tuple[str, Placed]]:
        """Yield the keys and values of a mapping, none of anything else."""
        yield from self.data.items() if isinstance(self.data, dict) else ()

    def values(self) -> Iterator[Placed]:
        """Yield the values of a list, none of anything else."""
        yield from self.data if isinstance(self.data, list) else ()

    def nearest_value(self, *path: str | int) -> Placed:
        """Return the value at a path, or the last value on the way to it."""
        value = self
        for step in path:
            following = value.at(step)
            if following is None:
                break
            value = following
        return value

    def problem(self, message: str, hint: str = "") -> Problem:
        """Return a problem with this value, which quotes its line."""
        return self.source.problem(self.line, self.column, message, text=self.text, hint=hint)


def read_manifests(path: Path) -> tuple[Placed, ...]:
    """Return the documents of a file, in their order.

    Raises ScenarioError, with the place, for anything but manifests.
    """
    source = read_source(path, "a manifest", MAX_BYTES)
    reader = _Reader(source)
    try:
        nodes = list(yaml.compose_all(source.text, Loader=yaml.SafeLoader))
        documents = [reader.placed(node, 0) for node in nodes if node is not None]
    except yaml.MarkedYAMLError as error:
        line, column, message, *hint = explain(error, source)
        raise ScenarioError([source.problem(line, column, message, hint=hint[0] if hint else "")]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        first = str(error).partition("\n")[0]
        raise ScenarioError([source.problem(1, 1, f"not YAML: {first}")]) from None
    except RecursionError:
        raise ScenarioError([source.problem(1, 1, "nested too deeply")]) from None
    objects = [value for document in documents if document.data is not None for value in _objects(document)]
    wrong = [value for value in objects if not isinstance(value.data, dict)]
    if wrong:
        raise ScenarioError([value.problem("a manifest is a mapping of keys to values") for value in wrong])
    return tuple(objects)


def _objects(document: Placed) -> Iterator[Placed]:
    """Yield the objects of a List, the output of ``kubectl get … -o yaml``; any other document is itself the object."""
    kind, items = document.at("kind"), document.at("items")
    if kind is None or kind.data != "List" or items is None:
        yield document
        return
    for value in items.values():
        yield from _objects(value)


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._count = 0
        self._constructor = yaml.constructor.SafeConstructor()

    def placed(self, node: yaml.Node, depth: int, key: yaml.Node | None = None) -> Placed:
        """Return the value of a node; its place is the place of its key where it has one."""
        mark = (key or node).start_mark
        line, column = mark.line + 1, mark.column + 1
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise ScenarioError([self._source.problem(line, column, "too deep, or too many values, to be a manifest")])
        text = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
        if isinstance(node, yaml.MappingNode):
            return Placed(self._mapping(node, depth), self._source, line, column, text)
        if isinstance(node, yaml.SequenceNode):
            data = [self.placed(part, depth + 1) for part in node.value]
            return Placed(data, self._source, line, column, text)
        if node.tag not in _SCALARS:
            raise ScenarioError([self._source.problem(line, column, f"tag {node.tag} is not read")])
        make = self._constructor.yaml_constructors[node.tag]
        return Placed(make(self._constructor, node), self._source, line, column, text or str(node.value))

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Placed]:
        entries: dict[str, Placed] = {}
        merged: dict[str, Placed] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag.endswith(":merge"):
                for name, entry in self._merged(value, depth + 1).items():
                    merged.setdefault(name, entry)
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise ScenarioError([self._problem(key, "a key must be plain text")])
            if key.value in entries:
                first = entries[key.value].line
                message = f"key '{key.value}' is written twice, first in line {first}"
                raise ScenarioError([self._problem(key, message, text=key.value)])
            entries[key.value] = self.placed(value, depth + 1, key)
        return {**merged, **entries}

    def _merged(self, node: yaml.Node, depth: int) -> dict[str, Placed]:
        """Return the entries of a merge key, as kubectl reads it: of several mappings the first with a key counts."""
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise ScenarioError([self._problem(node, "too deep, or too many values, to be a manifest")])
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if not isinstance(node, yaml.SequenceNode) or not all(
            isinstance(part, yaml.MappingNode) for part in node.value
        ):
            raise ScenarioError([self._problem(node, "a merge key takes a mapping, or a list of mappings")])
        entries: dict[str, Placed] = {}
        for part in node.value:
            entries = {**self._merged(part, depth + 1), **entries}
        return entries

    def _problem(self, node: yaml.Node, message: str, text: str = "") -> Problem:
        mark = node.start_mark
        return self._source.problem(mark.line + 1, mark.column + 1, message, text=text)
