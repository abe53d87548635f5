"""The cells, variables and tags of a scenario file, unchecked: for the completions of a shell.

Light: reads the YAML and the declarations, and imports no model. A broken file raises ScenarioError, or lacks parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from chaos.scenario import yaml_nodes
from chaos.scenario.errors import Problems
from chaos.scenario.matrix import expand
from chaos.scenario.source import read_source
from chaos.scenario.variables import Declared, apply_settings, declare

_MOST_CELLS = 1000
"""Most cells that are named; nobody reads more in a shell."""


@dataclass(frozen=True)
class Outline:
    """The declarations of a scenario, and its tags."""

    declared: Declared
    tags: tuple[str, ...]

    def cells(self, settings: Mapping[str, str]) -> Iterator[str]:
        """Yield names of the cells, with the axes pinned that ``settings`` of the command line name."""
        apply_settings(self.declared, settings)
        for name, _ in islice(expand(self.declared), _MOST_CELLS):
            if name:
                yield name


def outline(path: Path) -> Outline:
    """Read the outline of a scenario file. Raises ScenarioError where it cannot be read."""
    source, problems = read_source(path, pipes=False), Problems()
    root = yaml_nodes.parse(source, problems)
    entry = root.entries.get("tags")
    items = entry.value.items if entry is not None and isinstance(entry.value, yaml_nodes.Sequence) else ()
    tags = tuple(item.text for item in items if isinstance(item, yaml_nodes.Scalar))
    return Outline(declare(root, source, problems), tags)
