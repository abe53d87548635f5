"""Where the evidence of a sample has fields, and the same evidence with one of them missing or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Mutate = Callable[[dict[str, Any]], None]


def fields(evidence: Any, inside: str = "") -> Iterator[str]:
    """Every field that has a value, also inside of other fields: ``node``, ``node.status``, ``reset.0.port``."""
    items = evidence.items() if isinstance(evidence, dict) else enumerate(evidence)
    for name, value in items:
        if value is None:
            continue
        yield f"{inside}{name}"
        if isinstance(value, (dict, list)):
            yield from fields(value, f"{inside}{name}.")


def missing(field: str) -> Mutate:
    """Take the field away."""

    def spoil(evidence: dict[str, Any]) -> None:
        around, key = _place(evidence, field)
        del around[key]

    return spoil


def changed(field: str, value: Any = None) -> Mutate:
    """Give the field ``value``, or another one of its type."""
    return _given(field, (lambda old: _other(old)) if value is None else (lambda old: value))


def retyped(field: str) -> Mutate:
    """Give the field a value of another type."""
    return _given(field, lambda old: 12345 if isinstance(old, str) else "a value of another type")


def _given(field: str, value: Callable[[Any], Any]) -> Mutate:
    def spoil(evidence: dict[str, Any]) -> None:
        around, key = _place(evidence, field)
        around[key] = value(around[key])

    return spoil


def _place(evidence: dict[str, Any], field: str) -> tuple[Any, Any]:
    """What the field is in, and its key there."""
    around: Any = evidence
    *outer, name = field.split(".")
    for one in outer:
        around = around[_key(around, one)]
    return around, _key(around, name)


def _key(around: Any, name: str) -> Any:
    return name if isinstance(around, Mapping) else int(name)


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return -value - 3
        case str():
            return "another value"
        case list():
            return []
        case _:
            return {}
