"""A job's configuration: its YAML, the files that it is based on and the scenario's overrides, merged.

They are merged as MindFormers does.

The file may lie anywhere: it is only read here, a checkout is rarely below the scenarios, and the run trains on a copy.
Source of the rules: MindFormers, mindformers/tools/register/config.py (1.0 to 2.1).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaos.jobs.mindformers.yaml_file import Value, read_yaml
from chaos.scenario.completion import Origin
from chaos.scenario.errors import ScenarioError, printable, quote
from chaos.scenario.lines import Lines
from chaos.scenario.source import Source, read_source

BASE = "base_config"
"""Key that names the file, or files, that a configuration adds to."""

MAX_FILES = 32
"""Most files of one configuration, and most names in one base_config."""

MAX_CHARACTERS = 1024 * 1024
"""Longest text of these files together: text in Python's syntax is slow to parse."""


@dataclass(frozen=True)
class Configuration:
    """The merged configuration of one job. ``file`` is the one that the scenario names, absolute."""

    file: Path
    root: Value

    def get(self, key: str) -> Value | None:
        """Return the value of a dotted key such as ``runner_config.sink_size``; None if the configuration has none."""
        value = self.root
        for part in key.split("."):
            if not isinstance(value.data, dict) or part not in value.data:
                return None
            value = value.data[part]
        return value

    def origin(self, key: str, value: Value | None, default: object = None) -> Origin:
        """Return the place of a value, for plans and messages; with ``default`` for a key that is left out."""
        if value is None:
            return Origin(shown_path(self.file), 0, 0, key, str(default))
        quoted = value.problem("")
        return Origin(value.file, value.line, value.column, key, value.shown, quoted.excerpt, quoted.caret)

    def plain(self) -> dict[str, Any]:
        """Return the merged configuration as plain data."""
        data: dict[str, Any] = self.root.plain()
        return data


def read_configuration(
    config: str, overrides: Mapping[str, Any], scenario_file: Path, lines: Lines | None = None
) -> Configuration:
    """Read a configuration with the scenario's overrides.

    Args:
        config: its path, relative to the scenario file's directory or absolute.
        overrides: values by dotted keys or nested mappings, as MindFormers merges those of its command line.
        scenario_file: the scenario.
        lines: positions in the scenario, for messages about an override.

    Raises ScenarioError, with file and line, on anything that MindFormers cannot read or merge.
    """
    file = Path(os.path.normpath(scenario_file.parent.absolute() / config))
    root = _based(file, [], _Read())
    source = Source(printable(str(scenario_file)), "")
    if overrides and lines is not None:
        source = read_source(scenario_file)
    for key, value in overrides.items():
        line, column = (0, 0) if lines is None else lines.nearest(f"job.overrides.{key}")
        placed = _placed(value, key, source, line, column)
        for part in reversed(key.split(".")):
            placed = Value({part: placed}, source, line, column, key=key, size=placed.size + 1)
        root = _merge(placed, root)
    return Configuration(file, root)


def shown_path(path: Path) -> str:
    """Return a path as messages show it: relative to the working directory if it is below that."""
    try:
        return printable(str(path.relative_to(Path.cwd())))
    except (ValueError, OSError):
        return printable(str(path))


@dataclass
class _Read:
    """State of one reading. ``merged`` holds files with their bases: each is read once."""

    merged: dict[Path, Value] = field(default_factory=dict)
    files: int = 0
    characters: int = 0


def _based(file: Path, above: list[Path], read: _Read) -> Value:
    """Return a file, merged into the files of its base_config; its own values win."""
    document = read_yaml(file, shown_path(file))
    read.files += 1
    read.characters += len(document.source.text)
    root = replace(document, data={key: value for key, value in document.data.items() if key != BASE})
    base = document.data.get(BASE)
    if base is None:
        return root
    names = base.data if isinstance(base.data, list) else [base]
    if len(names) > MAX_FILES:
        raise ScenarioError([base.problem(f"{BASE} names more than {MAX_FILES} files")])
    bases: dict[Hashable, Value] = {}
    for name in names:
        if not isinstance(name.data, str):
            raise ScenarioError([name.problem(f"{BASE} must name a file, or a list of files")])
        other = Path(os.path.normpath(file.parent / name.data))
        chain = [*above, file]
        if other in chain:
            raise ScenarioError([name.problem(f"{BASE} leads back to {quote(shown_path(other))}")])
        if other not in read.merged:
            if not other.is_file():
                raise ScenarioError([name.problem(f"{BASE} names {quote(shown_path(other))}, which is no file")])
            if read.files >= MAX_FILES or read.characters > MAX_CHARACTERS:
                limits = f"{MAX_FILES} files, or {MAX_CHARACTERS // 1024} Ki characters,"
                raise ScenarioError([name.problem(f"more than {limits} in all are named by {BASE}")])
            read.merged[other] = _based(other, chain, read)
        bases.update(read.merged[other].data)
    return _merge(root, Value(bases, root.source, root.line, root.column))


def _merge(over: Value, under: Value) -> Value:
    """Merge mappings key by key; any other value replaces the old value."""
    merged = dict(under.data)
    for key, value in over.data.items():
        below = merged.get(key)
        if isinstance(value.data, dict) and below is not None and below.data is not None:
            if isinstance(below.data, list) and not value.data:
                continue
            if not isinstance(below.data, dict):
                message = f"{quote(key)} is a mapping here, but {below.shown} in {below.file}:{below.line}"
                raise ScenarioError([value.problem(message, "give the whole value")])
            merged[key] = _merge(value, below)
        else:
            merged[key] = value
    return Value(merged, under.source, under.line, under.column, key=under.key)


def _placed(data: Any, key: str, source: Source, line: int, column: int) -> Value:
    """Return plain data of the scenario as values that all stand at the override's key."""
    if isinstance(data, dict):
        held = {name: _placed(item, key, source, line, column) for name, item in data.items()}
        return Value(held, source, line, column, key=key, size=1 + sum(value.size for value in held.values()))
    if isinstance(data, list):
        items = [_placed(item, key, source, line, column) for item in data]
        return Value(items, source, line, column, key=key, size=1 + sum(value.size for value in items))
    if data is not None and not isinstance(data, (str, int, float)):
        data = None  # a problem was reported for it
    text = {True: "true", False: "false", None: "null"}[data] if data is None or isinstance(data, bool) else str(data)
    return Value(data, source, line, column, text, key)


def is_off(value: Value | None) -> bool:
    """Return whether a switch that is on by default is off.

    To MindFormers null is false, not left out, and so is 0.
    """
    return value is not None and not value.data


def callbacks(configuration: Configuration) -> Iterator[Value]:
    """Yield the mappings under ``callbacks``, in their order."""
    value = configuration.get("callbacks")
    if value is not None and isinstance(value.data, list):
        yield from (part for part in value.data if isinstance(part.data, dict))
