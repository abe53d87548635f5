"""The content of a statement as data: ranks, step, file and parameters, with the expected and the seen value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

Value = bool | int | float | str | None
"""A value of a statement. A float that is not finite is a text: ``nan``, ``inf`` or ``-inf``."""

STATE, LOSS, SAVED, REPLICA = "state", "loss", "saved state", "replica state"
"""Quantities: the digest of a parameter in a rank's memory, the loss of a step, the digest of a parameter in a file,
and the digest of a parameter in the memory of two ranks that share it."""


@dataclass(frozen=True)
class StatementData:
    """The facts of a statement. A fact that the statement does not know is None, or empty.

    ``ranks`` and ``nodes`` are sorted. ``step`` is the first step at which the statement holds, ``file`` a path in the
    run's directory, ``fault`` the id of a fault, ``phase`` a phase of the recovery or the name of a deadline.
    ``parameters`` are all that differ or are missing, in order; ``compared`` is how many were compared. ``expected``
    and ``seen`` are values of ``quantity`` in ``unit``; where several parameters differ, those of the first.

    Where they are digests, and files of the run hold both states, ``element`` is the index of the first element of that
    parameter that differs, ``[1, 2]``, and ``value_expected`` and ``value_seen`` are its values.

    ``finding`` is the id of the known defect whose signature the evidence of a failing statement bears.
    """

    ranks: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    step: int | None = None
    phase: str | None = None
    fault: str | None = None
    mechanism: str | None = None
    pids: tuple[int, ...] = ()
    file: str | None = None
    parameters: tuple[str, ...] = ()
    compared: int | None = None
    quantity: str | None = None
    expected: Value = None
    seen: Value = None
    unit: str | None = None
    element: str | None = None
    value_expected: Value = None
    value_seen: Value = None
    finding: str | None = None

    @property
    def has_subject(self) -> bool:
        """Whether it names what the statement is about: ranks, nodes, processes, step, phase, fault or file."""
        place = (self.step, self.phase, self.fault, self.mechanism, self.file)
        return bool(self.ranks or self.nodes or self.pids) or any(part is not None for part in place)

    @property
    def is_of_digests(self) -> bool:
        """Whether the values are the digests of a parameter that differs, not of one that is missing."""
        known = self.expected is not None and self.seen is not None
        return self.quantity in (STATE, SAVED, REPLICA) and bool(self.parameters) and known

    def with_element(self, index: Sequence[int], expected: object, seen: object) -> StatementData:
        """Return the facts with the first element that differs."""
        return replace(self, element=str(list(index)), value_expected=_as_value(expected), value_seen=_as_value(seen))

    def to_json(self) -> dict[str, Any]:
        """Return the facts that are known, by name."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in known.items()
            if value is not None and value != ()
        }


NO_DATA = StatementData()


def about(
    ranks: int | Iterable[int | None] | None = None,
    *,
    nodes: int | Iterable[int | None] | None = None,
    step: int | None = None,
    phase: str | None = None,
    fault: str | None = None,
    mechanism: str | None = None,
    pids: int | Iterable[int | None] | None = None,
    file: str | None = None,
    parameters: Sequence[str] = (),
    compared: int | None = None,
    quantity: str | None = None,
    expected: object = None,
    seen: object = None,
    unit: str | None = None,
    finding: str | None = None,
) -> StatementData:
    """Return what a statement is about. A single rank, node or process stands for itself.

    Facts may come from a record that holds anything, so what is not of its type is left out.
    """
    return StatementData(
        _sorted(ranks),
        _sorted(nodes),
        step if _is_number(step) else None,
        phase,
        fault if isinstance(fault, str) else None,
        mechanism,
        _sorted(pids),
        file,
        tuple(parameters),
        compared,
        quantity,
        _as_value(expected),
        _as_value(seen),
        unit,
        finding=finding,
    )


def from_json(data: dict[str, Any]) -> StatementData:
    """Return the facts in ``data``, the opposite of :meth:`StatementData.to_json`; names of later versions are left."""
    known: dict[str, Any] = {field.name: data[field.name] for field in fields(StatementData) if field.name in data}
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    return StatementData(**values)


def _sorted(numbers: int | Iterable[int | None] | None) -> tuple[int, ...]:
    if numbers is None or isinstance(numbers, int):
        numbers = (numbers,)
    return tuple(sorted({number for number in numbers if number is not None and _is_number(number)}))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _as_value(value: object) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
