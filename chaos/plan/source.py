"""Where what is planned stands: in the scenario's file, and in the job's own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chaos.plan.problems import Lines
from chaos.scenario.completion import Origin
from chaos.scenario.errors import Problem


@dataclass(frozen=True)
class Source:
    """One matrix cell by its places, and what the job's own files say beside it.

    Args:
        file: the name of the scenario's file, for errors and the plan.
        lines: positions of its keys.
        cell: the name of the matrix cell.
        origins: where in the job's own files the values stand that the scenario leaves out, by dotted path.
        facts: what else these files say, by the names that the plan gives it.
        found: problems that have been found already, in these files or by the platform.
    """

    file: str
    lines: Lines
    cell: str = ""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    facts: Mapping[str, Origin] = field(default_factory=dict)
    found: tuple[Problem, ...] = ()
