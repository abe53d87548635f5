"""Collects the problems of a scenario, with its lines, so that one error names everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from chaos.plan.topology.errors import TopologyError
from chaos.scenario.completion import Origin
from chaos.scenario.errors import Problem, ScenarioError, printable


class Lines(Protocol):
    """The places of the keys of the scenario file. :class:`chaos.scenario.lines.Lines` implements it."""

    def nearest(self, path: str) -> tuple[int, int] | None:
        """Return line and column of a dotted path such as ``faults.0.trigger.step``, or of the nearest key around it.

        None where the scenario has no text of its own.
        """
        ...


class Problems:
    """The problems of one scenario file, in the order in which they were found.

    ``origins`` says where in the job's own files the values stand that the scenario leaves out; ``found`` are problems
    known already.
    """

    def __init__(
        self, source: str, lines: Lines, origins: Mapping[str, Origin] | None = None, problems: Iterable[Problem] = ()
    ) -> None:
        self._source = source
        self._lines = lines
        self._origins = origins or {}
        self._found: list[Problem] = list(problems)

    def line(self, path: str) -> int | None:
        """Return the line of a key or of the nearest key around it, None where the scenario has no text of its own."""
        position = self._lines.nearest(path)
        return position and position[0]

    def where(self, path: str) -> str:
        """Return ``file:line`` of a key, to be quoted in a message about another key."""
        if (origin := self._origin(path)) is not None:
            return f"{origin.file}:{origin.line}" if origin.line else origin.file
        line = self.line(path)
        return self._source if line is None else f"{self._source}:{line}"

    def add(self, path: str, message: str, *, text: object = "", hint: str = "") -> None:
        """Note a problem at a key. ``text`` is the offending text, ``hint`` the remedy."""
        if (origin := self._origin(path)) is not None:
            message = f"{path}, which {origin.file} decides ({origin.key}): {message}"
            hint = f"{hint}; job.overrides can change {origin.key}" if hint else ""
            self._found.append(origin.problem(message, hint))
            return
        line, column = self._lines.nearest(path) or (0, 0)
        self._found.append(Problem(self._source, line, column, message, text=printable(str(text)), hint=hint))

    def add_found(self, problems: Iterable[Problem]) -> None:
        """Note problems that were found elsewhere, with their own places."""
        self._found.extend(problems)

    def _origin(self, path: str) -> Origin | None:
        """Return the place of a value that the scenario leaves out; for a whole section, its first value's."""
        if path in self._origins or path.count(".") != 1:
            return self._origins.get(path)
        return next((origin for key, origin in self._origins.items() if key.startswith(f"{path}.")), None)

    def add_topology(self, base: str, error: TopologyError, *, text: object = "") -> None:
        """Note a topology error; its key is relative to ``base``."""
        self.add(f"{base}.{error.key}" if error.key else base, error.message, text=text, hint=error.hint)

    def error(self) -> ScenarioError:
        """Return one error with every problem noted so far."""
        return ScenarioError(self._found)

    def raise_found(self) -> None:
        """Raise one ScenarioError with every problem noted so far, if there is one."""
        if self._found:
            raise self.error()
