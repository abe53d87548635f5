"""The sources of the plan: the scenario's file, and the job's own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chaos.plan.problems import Lines
from chaos.scenario.completion import Origin
from chaos.scenario.errors import Problem


@dataclass(frozen=True)
class Source:
    """The places of one matrix cell, and the statements of the job's own files beside it.

    Args:
        file: the name of the scenario's file, for errors and the plan.
        lines: positions of its keys.
        cell: the name of the matrix cell.
        origins: the places in the job's own files of the values that the scenario leaves out, by dotted path.
        facts: the other statements of these files, by the plan's names for them.
        known_problems: problems found already, in these files or by the platform.
    """

    file: str
    lines: Lines
    cell: str = ""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    facts: Mapping[str, Origin] = field(default_factory=dict)
    known_problems: tuple[Problem, ...] = ()
