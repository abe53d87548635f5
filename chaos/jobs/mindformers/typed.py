"""Values of a configuration by their type. A wrong type is a problem with its place, and counts as a key left out."""

from __future__ import annotations

from typing import TypeVar

from chaos.jobs.mindformers.configuration import Configuration
from chaos.jobs.mindformers.version import NEWEST, Release
from chaos.jobs.mindformers.yaml_file import Value
from chaos.scenario.completion import Origin
from chaos.scenario.errors import Problem
from chaos.scenario.messages import kind_of

_T = TypeVar("_T", int, str)

MOST = 10**9
"""Largest size or count that a configuration may give: products of several must stay numbers of a few digits."""


class Typed:
    """Reads a configuration as a release of MindFormers does.

    ``problems`` holds the values of a wrong type, each once.
    """

    def __init__(self, configuration: Configuration, release: Release = NEWEST) -> None:
        self.configuration = configuration
        self.release = release
        self.problems: list[Problem] = []

    def whole(self, key: str, *, least: int = 0, most: int = MOST) -> int | None:
        """Return a whole number, None if the configuration has none."""
        value = self._written(key)
        if value is None:
            return None
        if isinstance(value.data, bool) or not isinstance(value.data, int) or value.data < least:
            self._wrong(key, value, f"a whole number from {least}")
            return None
        if value.data > most:
            self._wrong(key, value, f"{most} at most")
            return None
        return value.data

    def number(self, key: str) -> float | None:
        """Return a number, None if the configuration has none."""
        value = self._written(key)
        if value is None:
            return None
        if isinstance(value.data, bool) or not isinstance(value.data, (int, float)):
            self._wrong(key, value, "a number")
            return None
        try:
            return float(value.data)
        except OverflowError:
            self._wrong(key, value, "a number of at most 308 digits")
            return None

    def flag(self, key: str) -> bool | None:
        """Return true or false, None if the configuration has neither."""
        value = self._written(key)
        if value is None or isinstance(value.data, bool):
            return None if value is None else bool(value.data)
        self._wrong(key, value, "true or false")
        return None

    def text(self, key: str) -> str | None:
        """Return a text, None if the configuration has none."""
        value = self._written(key)
        if value is None or isinstance(value.data, str):
            return None if value is None else str(value.data)
        self._wrong(key, value, "text")
        return None

    def section(self, key: str, kind: type[dict[str, object]] | type[list[object]]) -> None:
        """Report a section of another kind than MindFormers accepts."""
        value = self._written(key)
        if value is not None and not isinstance(value.data, kind):
            self._wrong(key, value, "a mapping" if kind is dict else "a list")

    def checked(self, key: str, value: Value, kind: type[_T], default: _T) -> _T:
        """Return the data of a value that exists, ``default`` if it is of another type."""
        if isinstance(value.data, kind) and not (kind is int and isinstance(value.data, bool)):
            if not isinstance(value.data, int) or value.data <= MOST:
                return value.data
            self._wrong(key, value, f"{MOST} at most")
            return default
        self._wrong(key, value, {int: "a whole number", str: "text"}[kind])
        return default

    def origin(self, key: str, default: object = None) -> Origin:
        """Return the place of a key's value, or a note that it is left out, with the effect."""
        return self.configuration.origin(key, self._written(key), default)

    def _written(self, key: str) -> Value | None:
        value = self.configuration.get(key)
        return None if value is None or value.data is None else value

    def _wrong(self, key: str, value: Value, expected: str) -> None:
        shown = kind_of(value.plain()) if isinstance(value.data, (str, int, float, list, dict)) else value.shown
        if isinstance(value.data, int) and not isinstance(value.data, bool):
            shown = f"the number {value.shown}"
        problem = value.problem(f"{key} must be {expected}, not {shown}")
        if problem not in self.problems:
            self.problems.append(problem)
