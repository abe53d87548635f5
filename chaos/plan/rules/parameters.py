"""Parameters of fault kinds: their allowed values, so that a wrong one is refused before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chaos.scenario.errors import suggest

if TYPE_CHECKING:
    from chaos.plan.problems import Problems
    from chaos.plan.schedule import Scheduled


@dataclass(frozen=True)
class Parameter:
    """One parameter: a number from ``least`` to ``most``, one of ``words`` (with ``most`` a number as well), or any
    ``text``.

    ``about`` explains it, with its unit. ``whole``: the number has no fraction. ``several``: a list of such whole
    numbers, each once. Without a ``default`` it may be left out only if it is not ``required``.
    """

    about: str
    least: float = 0.0
    most: float = 0.0
    words: tuple[str, ...] = ()
    text: bool = False
    whole: bool = False
    several: bool = False
    required: bool = False
    default: float | str | None = None

    @property
    def range(self) -> str:
        """The allowed values, in words."""
        if self.words:
            number = f", or a {'whole ' if self.whole else ''}number from {self.least:g} to {self.most:g}"
            return f"one of {', '.join(self.words)}{number if self.most else ''}"
        if self.text:
            return "a text"
        if self.several:
            return f"a list of different whole numbers from {self.least:g} to {self.most:g}"
        return f"a {'whole ' if self.whole else ''}number from {self.least:g} to {self.most:g}"

    def takes(self, value: Any) -> bool:
        """Return whether the value is allowed."""
        if self.words and (not self.most or isinstance(value, str)):
            return value in self.words
        if self.text:
            return isinstance(value, str) and bool(value)
        if self.several:
            each = isinstance(value, list) and all(isinstance(part, int) and self._within(part) for part in value)
            return each and bool(value) and len(set(value)) == len(value)
        number = isinstance(value, int) or (isinstance(value, float) and not self.whole)
        return number and self._within(value)

    def _within(self, value: float) -> bool:
        return not isinstance(value, bool) and self.least <= value <= self.most


Parameters = Mapping[str, Parameter]


def check_parameters(faults: Sequence[Scheduled], known: Mapping[str, Parameters], problems: Problems) -> None:
    """Note parameters that a kind does not have, that are out of range, or that are missing.

    ``known`` holds the parameters by fault kind; a kind missing there checks its own.
    """
    for fault in faults:
        kind, values = fault.fault.kind, fault.fault.parameters
        if kind not in known:
            continue
        path = f"{fault.path}.parameters"
        for name, value in values.items():
            parameter = known[kind].get(name)
            if parameter is None:
                hint = suggest(name, known[kind]) or f"it has: {', '.join(known[kind]) or 'none'}"
                problems.add(f"{path}.{name}", f"a {kind} has no parameter {name!r}", text=name, hint=hint)
            elif not parameter.takes(value):
                message = f"{name} of a {kind} is {parameter.range}, not {value!r}"
                problems.add(f"{path}.{name}", message, text=value, hint=parameter.about)
        for name, parameter in known[kind].items():
            if parameter.required and name not in values:
                message = f"fault {fault.fault.id!r} does not say {name}: {parameter.about}"
                problems.add(fault.path, message, text=kind, hint=f"write parameters: {{{name}: …}}, {parameter.range}")


def value_of(parameters: Mapping[str, Any], known: Parameters, name: str) -> Any:
    """Return the value of a fault's parameter: the scenario's, or its default."""
    return parameters.get(name, known[name].default)
