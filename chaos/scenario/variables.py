"""Variables and matrix axes: the declarations of a file, and the settings of the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field
from typing import Any

import yaml

from chaos.scenario.errors import Problem, Problems, printable, quote, suggest
from chaos.scenario.scalars import resolve
from chaos.scenario.source import Source
from chaos.scenario.yaml_nodes import Mapping, Node, Scalar, Sequence, parse_scalar

REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}]*)(\}?)")
"""Either an escape (group 1) or a reference: its name (group 2) and its end (group 3)."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a variable. ``size`` counts its scalars and the characters of its texts."""

    data: Any
    size: int

    @property
    def shown(self) -> str:
        """The value as shown in cell names and inserted text."""
        return show(self.data)


@dataclass
class Declared:
    """The declarations of a scenario. ``broken`` names have a problem of their own; their uses are not checked."""

    variables: dict[str, Value] = field(default_factory=dict)
    axes: dict[str, list[Value]] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    @property
    def names(self) -> set[str]:
        """Every declared name."""
        return {*self.variables, *self.axes, *self.broken}

    def possible(self, name: str) -> list[Value]:
        """Return every value that a name can have; an axis hides the variable of its name."""
        if name in self.axes:
            return self.axes[name]
        return [self.variables[name]] if name in self.variables else []


def declare(root: Mapping, source: Source, problems: Problems) -> Declared:
    """Read ``variables`` and ``matrix``. Values are plain data: they cannot refer to other variables."""
    declared = Declared()
    for section in ("variables", "matrix"):
        if (entry := root.entries.get(section)) is None:
            continue
        if not isinstance(entry.value, Mapping):
            if not entry.value.broken:
                message = f"{section} must be a mapping of names to {'lists' if section == 'matrix' else 'values'}"
                problems.append(source.problem(entry.line, entry.column, message, text=section))
            continue
        for name, (line, column, node) in entry.value.entries.items():
            declared.places[name] = (line, column)
            before = len(problems)
            if not IDENTIFIER.fullmatch(name):
                message = f"{quote(name)} cannot be the name of a variable"
                hint = "a name has letters, digits and '_', and does not begin with a digit"
                problems.append(source.problem(line, column, message, text=name, hint=hint))
            if section == "variables":
                declared.variables[name] = _value(node, source, problems)
            elif isinstance(node, Sequence) and node.items:
                declared.axes[name] = [_value(item, source, problems) for item in node.items]
            elif not node.broken:
                message = f"axis {quote(name)} must be a list of values"
                message += "; it is empty" if isinstance(node, Sequence) else ""
                problems.append(source.problem(line, column, message, text=name))
            if len(problems) > before or node.broken:
                declared.broken.add(name)
            if section == "matrix" and isinstance(node, Sequence) and node.items:
                _refuse_repeated(name, node, declared.axes[name], source, problems)
    return declared


def apply_settings(declared: Declared, settings: Mapped[str, str]) -> list[Problem]:
    """Let the command line set variables and pin axes. Return the problems: unknown names and odd values."""
    problems = []
    for name, text in settings.items():
        place = printable(f"--set {name}={text}")
        if name not in declared.names:
            message = f"the scenario has no variable {quote(name)}"
            problems.append(Problem(place, 0, 0, message, hint=suggest(name, declared.names, "variables")))
            continue
        try:
            data = _setting(text)
        except (ValueError, yaml.YAMLError):
            problems.append(Problem(place, 0, 0, f"{quote(text)} is not a usable value"))
            continue
        value = Value(data, _size(data))
        if name in declared.axes or (name in declared.broken and name not in declared.variables):
            declared.axes[name] = [value]
        else:
            declared.variables[name] = value
    return problems


def show(data: Any) -> str:
    """Return a value as text. Text that could be read as another value or as two is shown in quotes."""
    if isinstance(data, str):
        try:
            plain = re.fullmatch(r"[^\s,='\"#\[\]{}]+", data) is not None and resolve(data) == data
        except ValueError:
            plain = False
        return data if plain and data.isprintable() else _json(data)
    if isinstance(data, float):
        return repr(data)
    return _json(data)


def _json(data: Any) -> str:
    return printable(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def _setting(text: str) -> Any:
    text.encode()  # An argument that is not UTF-8 raises UnicodeEncodeError, which is a ValueError.
    if "\0" in text:
        raise ValueError("NUL character")
    stripped = text.strip()
    return parse_scalar(stripped) if stripped[:1] in ("'", '"') else resolve(stripped)


def _value(node: Node, source: Source, problems: Problems) -> Value:
    data = _data(node, source, problems)
    return Value(data, _size(data))


def _data(node: Node, source: Source, problems: Problems) -> Any:
    if isinstance(node, Mapping):
        return {key: _data(entry.value, source, problems) for key, entry in node.entries.items()}
    if isinstance(node, Sequence):
        return [_data(item, source, problems) for item in node.items]
    if node.refers and not node.broken:
        return _without_references(node, source, problems)
    return node.value


def _without_references(node: Scalar, source: Source, problems: Problems) -> str:
    if any(match[1] is None for match in REFERENCE.finditer(node.text)):
        message = f"a variable cannot refer to a variable: {quote(node.text)}"
        hint = "for the text '${' write '$${'"
        problems.append(source.problem(node.line, node.column, message, text=node.text, hint=hint))
    return node.text.replace("$${", "${")


def _size(data: Any) -> int:
    if isinstance(data, dict):
        return 1 + sum(len(key) + _size(value) for key, value in data.items())
    if isinstance(data, list):
        return 1 + sum(map(_size, data))
    return 1 + len(data) if isinstance(data, str) else 1


def _refuse_repeated(name: str, node: Sequence, values: list[Value], source: Source, problems: Problems) -> None:
    earlier: set[str] = set()
    for item, value in zip(node.items, values, strict=True):
        if value.shown in earlier and not item.broken:
            message = f"axis {quote(name)} has the value {printable(value.shown[:60])} twice"
            problems.append(source.problem(item.line, item.column, message, text=_text(item)))
        earlier.add(value.shown)


def _text(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else ""
