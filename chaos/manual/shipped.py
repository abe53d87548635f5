"""The shipped scenarios, for the pages that quote them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.run.prepare.prepare import known_names
from chaos.scenario.find import iter_scenarios
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario

_SHOWN = 1


def some(names: Iterable[str], shown: int = _SHOWN) -> str:
    """Return the first of the names: a page that listed all would change with every new scenario."""
    ordered = sorted(names)
    return ", ".join(f"`{name}`" for name in ordered[:shown]) + (", …" if len(ordered) > shown else "")


def shipped_scenarios(directory: Path) -> dict[str, list[Scenario]]:
    """Return the cells of every scenario in a directory, by its name, in the order of the names."""
    names = known_names()
    loaded = [load_scenario(path, names=names) for path in iter_scenarios([directory])]
    by_name = {scenario.cells[0].scenario.name: [cell.scenario for cell in scenario.cells] for scenario in loaded}
    return dict(sorted(by_name.items()))
