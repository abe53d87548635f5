"""Finding a scenario and its cells, before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.api.errors import BadScenario, UnknownParameter, UnknownScenario

if TYPE_CHECKING:
    from chaos.scenario.load import Cell


def find(scenario: str | Path, directory: Path) -> Path:
    """Return the file of a scenario: a path below ``directory``, or a name. Raises UnknownScenario."""
    from chaos.cli.paths import scenario_directories
    from chaos.scenario.errors import ScenarioError
    from chaos.scenario.find import find_scenario

    if (path := directory / scenario).is_file():
        return path
    try:
        return find_scenario(scenario, directories=scenario_directories(directory)).absolute()
    except ScenarioError as error:
        raise UnknownScenario(str(error)) from None


def cells_of(path: Path, values: Mapping[str, object]) -> list[Cell]:
    """Return the cells of a scenario with these variables and axes.

    Raises BadScenario for a scenario with mistakes, and UnknownParameter for what it does not have.
    """
    from chaos.run.prepare.prepare import known_names
    from chaos.scenario.errors import ScenarioError, suggest
    from chaos.scenario.load import load_scenario

    names = known_names()
    try:
        cells = load_scenario(path, names=names).cells
        if values:
            scenario = cells[0].scenario
            known = [*scenario.variables, *scenario.matrix]
            for name in values:
                if name not in known:
                    hint = suggest(name, known, "it has")
                    raise UnknownParameter(f"{path.name} has no variable and no axis {name!r}; {hint}")
            settings = {name: as_text(name, value) for name, value in values.items()}
            cells = load_scenario(path, settings=settings, names=names).cells
    except ScenarioError as error:
        raise BadScenario(str(error)) from None
    return list(cells)


def as_text(name: str, value: object) -> str:
    """Return a value as the command line takes it, so that a text stays a text. Raises UnknownParameter."""
    from chaos.scenario.variables import show

    try:
        return show(list(value) if isinstance(value, tuple) else value)
    except (TypeError, ValueError):
        kinds = "a text, a number, a truth value, None, or a list or mapping of these"
        raise UnknownParameter(f"{name}={value!r}: a value must be {kinds}") from None
