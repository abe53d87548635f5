"""``${name}`` in the scalars of a scenario: checked once, filled in for every cell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from collections.abc import Mapping as Mapped
from typing import Any

from chaos.scenario.errors import Problems, quote, suggest
from chaos.scenario.source import Source
from chaos.scenario.variables import REFERENCE, Declared, Value
from chaos.scenario.yaml_nodes import Mapping, Node, Scalar, Sequence

_WHOLE = re.compile(r"\$\{([^}]*)\}")

LITERAL_SECTIONS = frozenset({"chaos", "variables", "matrix"})
"""Top keys that hold no references."""


class Broken:
    """Stands in the data for a value with an already reported problem."""


BROKEN = Broken()


class Allowance:
    """The most that the cells of one file may hold in all. Without a limit a small file could fill the memory."""

    def __init__(self, units: int) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Subtract from the rest. Raises OverflowError when nothing is left."""
        self.left -= units
        if self.left < 0:
            raise OverflowError


def check_references(
    root: Mapping, declared: Declared, source: Source, problems: Problems
) -> dict[str, frozenset[str]]:
    """Check every reference, and that every declared name is used.

    Return the names used, by top key. Scalars with a problem are marked as broken.
    """
    used: dict[str, frozenset[str]] = {}
    for key, entry in root.entries.items():
        if key not in LITERAL_SECTIONS:
            names: set[str] = set()
            for scalar in _scalars(entry.value):
                if scalar.refers and not scalar.broken:
                    _check_scalar(scalar, declared, source, problems, names)
            used[key] = frozenset(names)
    everywhere = frozenset().union(*used.values())
    for name, (line, column) in declared.places.items():
        if name not in everywhere and name not in declared.broken:
            what = "axis" if name in declared.axes else "variable"
            hint = f"use it as ${{{name}}}, or take it out"
            problems.append(source.problem(line, column, f"{what} {quote(name)} is never used", text=name, hint=hint))
    return used


def _check_scalar(scalar: Scalar, declared: Declared, source: Source, problems: Problems, names: set[str]) -> None:
    whole = _WHOLE.fullmatch(scalar.text)
    for match in REFERENCE.finditer(scalar.text):
        if match[1] is not None:
            continue
        name: str = match[2]
        message = hint = ""
        if not match[3] or not name:
            message, hint = f"{quote(match[0])} is not a variable", "write '${name}', or '$${' for the text '${'"
        elif name not in declared.names:
            message, hint = f"there is no variable {quote(name)}", suggest(name, declared.names, "variables")
        elif not whole and any(isinstance(value.data, (list, dict)) for value in declared.possible(name)):
            message = f"variable {quote(name)} holds a list or a mapping, which cannot be inserted into text"
            hint = f"write ${{{name}}} alone"
        names.add(name)
        if message:
            problems.append(source.problem(*_where(scalar, match[0], source), message, text=match[0], hint=hint))
        if message or name in declared.broken:
            scalar.broken = True


def _where(scalar: Scalar, text: str, source: Source) -> tuple[int, int]:
    """Return the place of ``text`` inside a scalar that may span several lines."""
    for number in range(scalar.line, scalar.line + scalar.text.count("\n") + 2):
        start = scalar.column - 1 if number == scalar.line else 0
        if (offset := source.line(number).find(text.split("\n")[0], start)) >= 0:
            return number, offset + 1
    return scalar.line, scalar.column


def references_of(scalar: Scalar) -> list[str]:
    """Return the names that a scalar refers to, each once, in order."""
    names = [match[2] for match in REFERENCE.finditer(scalar.text) if match[1] is None] if scalar.refers else []
    return list(dict.fromkeys(names))


def fill(node: Node, values: Mapped[str, Value], allowance: Allowance) -> Any:
    """Return the plain data of a node with references filled in; BROKEN where a problem was reported.

    A scalar that is one reference takes the typed value; otherwise the value's text is inserted.
    Raises OverflowError when the allowance is spent.
    """
    if isinstance(node, Mapping):
        return {key: fill(entry.value, values, allowance) for key, entry in node.entries.items()}
    if isinstance(node, Sequence):
        return [fill(item, values, allowance) for item in node.items]
    if node.broken:
        return BROKEN
    if not node.refers:
        return node.value
    if whole := _WHOLE.fullmatch(node.text):
        value = values[whole[1]]
        allowance.spend(value.size)
        return value.data

    def insert(match: re.Match[str]) -> str:
        if match[1] is not None:
            return "${"
        value = values[match[2]]
        allowance.spend(value.size)
        return value.data if isinstance(value.data, str) else value.shown

    return REFERENCE.sub(insert, node.text)


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Mapping):
        for entry in node.entries.values():
            yield from _scalars(entry.value)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _scalars(item)
    else:
        yield node


def count_nodes(root: Mapping, sections: Collection[str]) -> int:
    """Return the number of scalars in some sections: the cost of building one cell."""
    return sum(1 for key in sections if key in root.entries for _ in _scalars(root.entries[key].value))
