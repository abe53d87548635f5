"""The scenarios of this repository, by their names."""

from __future__ import annotations

from pathlib import Path

from chaos.scenario.find import find_scenario

SHIPPED = Path(__file__).parents[2] / "scenarios"


def shipped(name: str) -> Path:
    """Return the file of a scenario. Raises ScenarioError where no folder has it, or several have."""
    return find_scenario(name, directories=[SHIPPED])
