"""A YAML file as MindFormers reads it, with the place of every value.

MindFormers reads with PyYAML's safe loader, so ``on`` is true, ``010`` is 8 and ``1e-5`` is text, aliases and merge
keys are used, and of a duplicate key the last value counts. The same is done here from the parser's events:
no constructor of a collection ever runs, depth is bounded before anything recurses, and the values that aliases
multiply are counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from chaos.scenario.errors import Problem, ScenarioError, quote
from chaos.scenario.source import Source, read_source
from chaos.scenario.yaml_nodes import MAX_DEPTH, read_events

MAX_VALUES = 100_000
"""Most values of one file, each alias counted with all its values."""

MAX_BYTES = 256 * 1024
"""Largest configuration: MindFormers' own have 17 KiB at most, and text in Python's syntax is slow to parse."""

_Loader: Any = yaml.SafeLoader
"""MindFormers' own loader: the loader in C accepts some tabs that this one refuses."""

_CORE = "tag:yaml.org,2002:"
_SCALARS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null", "timestamp"))
_MERGE = object()
"""Stands for the key ``<<``."""

Data: TypeAlias = Any
"""A scalar, ``list[Value]`` or ``dict[Hashable, Value]``."""


@dataclass(slots=True)
class Value:
    """A value and its place: the position of its key, or its own in a list. ``text`` is the text of a scalar.

    ``data`` is a scalar, a list of values or a mapping of plain keys to values. ``key`` is the text of its key, empty
    in a list. ``size`` counts the values in it.
    """

    data: Data
    source: Source
    line: int
    column: int
    text: str = ""
    key: str = ""
    size: int = 1

    @property
    def file(self) -> str:
        """The file of the value, as messages name it."""
        return self.source.file

    def plain(self) -> Any:
        """Return the data without places."""
        if isinstance(self.data, dict):
            return {key: value.plain() for key, value in self.data.items()}
        if isinstance(self.data, list):
            return [item.plain() for item in self.data]
        return self.data

    @property
    def shown(self) -> str:
        """The value in a message: a scalar's text, shortened; for other values, their kind."""
        if isinstance(self.data, dict):
            return "a mapping"
        if isinstance(self.data, list):
            return "a list"
        return self.text if len(self.text) <= 60 else f"{self.text[:57]}..."

    def problem(self, message: str, hint: str = "") -> Problem:
        """Return a problem with this value, which quotes its line."""
        return self.source.problem(self.line, self.column, message, text=self.key or self.text, hint=hint)


def read_yaml(path: Path, shown: str | None = None) -> Value:
    """Return the mapping in a file, not to be changed. ``shown`` is its name in messages, the path unless given.

    Raises ScenarioError, with the place, on anything that MindFormers cannot read.
    """
    parsed = _parsed(read_source(path, "a configuration", MAX_BYTES, shown, pipes=False))
    if isinstance(parsed, Value):
        return parsed
    raise ScenarioError(parsed)


@lru_cache(maxsize=32)
def _parsed(source: Source) -> Value | tuple[Problem, ...]:
    """Return the mapping of a text, or why there is none; kept, since all cells of a matrix read the same files."""
    try:
        return _parse(source)
    except ScenarioError as error:
        return error.problems


def _parse(source: Source) -> Value:
    builder = _Builder(source)
    read_events(source, _Loader, builder.read, builder.error)
    root = builder.root
    if root is None or root.data is None:
        raise builder.error(1, 1, "the file is empty: a configuration is a mapping of keys to values")
    if not isinstance(root.data, dict):
        raise builder.error(root.line, root.column, "a configuration is a mapping of keys to values")
    return root


@dataclass(slots=True)
class _Open:
    """A collection that has not ended. ``key`` is a key that waits for its value, with its place."""

    value: Value
    anchor: str | None
    key: tuple[Any, int, int] | None = None
    merged: list[Value] = field(default_factory=list)


class _Builder:
    """Builds the values of one document from the parser's events."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.root: Value | None = None
        self._open: list[_Open] = []
        self._anchors: dict[str, Value | None] = {}
        self._resolver: Any = yaml.resolver.Resolver()
        self._constructor = yaml.constructor.SafeConstructor()
        self._count = 0

    def error(self, line: int, column: int, message: str, hint: str = "") -> ScenarioError:
        """Return the error that ends the reading."""
        return ScenarioError([self.source.problem(line, column, message, hint=hint)])

    def read(self, loader: Any) -> None:
        """Take the loader's events up to the end of the text."""
        documents = 0
        for event in iter(loader.get_event, None):
            if isinstance(event, yaml.StreamEndEvent):
                return
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            if not isinstance(event, yaml.AliasEvent) and getattr(event, "anchor", None) in self._anchors:
                raise self.error(line, column, f"there is an anchor '&{event.anchor}' before this one")
            if isinstance(event, yaml.ScalarEvent):
                self._add(self._scalar(event, line, column), event.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self._add(self._alias(str(event.anchor), line, column), None)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self._start(event, line, column)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                ended = self._open.pop()
                _merge(ended)
                self._add(ended.value, ended.anchor)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.error(line, column, "a second document begins here; MindFormers reads only one")

    def _start(self, event: Any, line: int, column: int) -> None:
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
        if event.tag not in (None, "!", _CORE + kind):
            raise self._bad_tag(event.tag, line, column)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        data: Data = {} if kind == "map" else []
        self._open.append(_Open(Value(data, self.source, line, column), event.anchor))
        if len(self._open) > MAX_DEPTH:
            raise self.error(line, column, f"nested more than {MAX_DEPTH} levels deep")

    def _scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> Value:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == f"{_CORE}merge":
            return Value(_MERGE, self.source, line, column, "<<")
        if tag not in _SCALARS:
            raise self._bad_tag(tag, line, column)
        try:
            data = self._constructor.yaml_constructors[tag](self._constructor, yaml.ScalarNode(tag, event.value))
            str(data)  # hexadecimal digits may make a number that Python writes to nobody
        except (ValueError, KeyError, OverflowError, yaml.YAMLError):
            message = f"{quote(event.value)} cannot be read as {tag.removeprefix(_CORE)}"
            raise self.error(line, column, message) from None
        return Value(data, self.source, line, column, event.value)

    def _alias(self, anchor: str, line: int, column: int) -> Value:
        if anchor not in self._anchors:
            raise self.error(line, column, f"there is no anchor '&{anchor}' before this alias")
        target = self._anchors[anchor]
        if target is None:
            raise self.error(line, column, f"alias '*{anchor}' is used inside its own anchor")
        return Value(target.data, self.source, line, column, target.text, size=target.size)

    def _add(self, value: Value, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        if not self._open:
            self.root = value
            return
        parent = self._open[-1]
        if parent.key is None and isinstance(parent.value.data, dict):
            parent.key = (self._key(value), value.line, value.column)
            return
        parent.value.size += value.size
        if parent.value.size > MAX_VALUES:
            hint = "aliases count with their full content"
            raise self.error(value.line, value.column, f"more than {MAX_VALUES} values", hint)
        if isinstance(parent.value.data, list):
            parent.value.data.append(value)
            return
        assert parent.key is not None
        key, line, column = parent.key
        parent.key = None
        if key is _MERGE:
            parent.merged.extend(self._mappings(value))
        else:
            parent.value.data[key] = Value(value.data, value.source, line, column, value.text, str(key), value.size)

    def _key(self, value: Value) -> Any:
        if isinstance(value.data, (dict, list)):
            raise self.error(value.line, value.column, "a key cannot be a list or a mapping")
        return value.data

    def _mappings(self, value: Value) -> Iterator[Value]:
        """Yield the mappings of a merge key: the later ones first, so that the first one wins."""
        listed = value.data[::-1] if isinstance(value.data, list) else [value]
        for mapping in listed:
            if not isinstance(mapping.data, dict):
                raise self.error(
                    mapping.line, mapping.column, "a merge key '<<' takes a mapping, or a list of mappings"
                )
            yield mapping

    def _bad_tag(self, tag: str, line: int, column: int) -> ScenarioError:
        hint = "MindFormers reads with yaml.safe_load, which makes plain data only"
        return self.error(line, column, f"tag {quote(tag)} is not read", hint)


def _merge(ended: _Open) -> None:
    """Add the keys of merge keys: keys of the mapping itself win."""
    if not ended.merged:
        return
    entries = ended.value.data
    taken: dict[Hashable, Value] = {}
    for value in ended.merged:
        taken.update(value.data)
    ended.value.data = {**taken, **entries}
