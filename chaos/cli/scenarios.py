"""Load the scenarios that a command line names.

The language and the planner are imported when a scenario is loaded, so that help and completion stay quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.base.refusal import Refused
from chaos.cli.paths import scenario_directories
from chaos.scenario.errors import suggest
from chaos.scenario.find import find_scenario, iter_scenarios

if TYPE_CHECKING:
    from chaos.run.prepare.prepared import Prepared
    from chaos.scenario.load import Cell, LoadedScenario


def load(
    text: str,
    settings: Mapping[str, str] | None = None,
    platform: str | None = None,
    inventory: Path | None = None,
) -> LoadedScenario:
    """Load a scenario by its path or by its name, with variables and the platform set from the command line.

    Raises ScenarioError for a file that is missing or wrong, and click.UsageError for an unknown platform, or an
    inventory without a platform of hosts.
    """
    from chaos.platforms.kind import with_inventory
    from chaos.run.prepare.on_platform import on_platform
    from chaos.run.prepare.prepare import known_names
    from chaos.scenario.load import load_scenario

    if inventory is not None and platform not in (takers := with_inventory()):
        raise click.UsageError(f"--inventory: is for --platform {' or '.join(takers)}")
    path = find_scenario(text, directories=scenario_directories(Path.cwd()))
    names = known_names()
    if platform is not None and names.platforms is not None and platform not in names.platforms:
        raise click.UsageError(
            f"--platform: no platform {platform!r}; {suggest(platform, names.platforms, 'there are')}"
        )
    return on_platform(load_scenario(path, settings=dict(settings or {}), names=names), platform, inventory)


def prepare_cells(
    pairs: Iterable[tuple[LoadedScenario, Cell]], sdk: str, draw_seed: int | None = None
) -> list[Prepared]:
    """Plan all cells: an impossible cell is refused before any other is started. ``sdk`` is the requested SDK.

    Raises ScenarioError, and click.UsageError where the SDK is not there or a job's input cannot be read.
    """
    from chaos.run.prepare.prepare import prepare

    chosen = list(pairs)
    prepared: list[Prepared] = []
    for loaded, cell in chosen:
        try:
            prepared.append(prepare(loaded, cell, sdk, draw_seed))
        except Refused as error:
            raise _usage_error(chosen, loaded, cell, error) from error
    return prepared


def _usage_error(
    cells: Sequence[tuple[LoadedScenario, Cell]], loaded: LoadedScenario, cell: Cell, error: Refused
) -> click.UsageError:
    """Return why a call is refused as a whole. In a call of several cells it names the cell that cannot work."""
    if len(cells) == 1:
        return click.UsageError(str(error))
    among = f"cell {cell.name!r}: " if cell.name else ""
    return click.UsageError(
        f"{loaded.path}: {among}{error}; no cell of this call was started: mend this one, or leave it out"
    )


def refuse_impossible(pairs: Iterable[tuple[LoadedScenario, Cell]], sdk: str) -> None:
    """Refuse a cell that cannot be planned, before a process of its own runs any cell.

    Inputs of a job that cannot be read are reported by its own run. Raises ScenarioError, and click.UsageError where
    the SDK is not there.
    """
    from chaos.run.prepare.needs import chosen_sdk
    from chaos.run.prepare.prepare import plan_cell
    from chaos.run.prepare.versions import with_timings_of

    cells = list(pairs)
    for loaded, cell in cells:
        try:
            sdk_of_cell = chosen_sdk(sdk, cell.scenario)
        except Refused as error:
            raise _usage_error(cells, loaded, cell, error) from error
        plan_cell(loaded, with_timings_of(sdk_of_cell, cell))


def named_files(texts: Sequence[str]) -> list[Path]:
    """Return the scenario files that the texts name: those of files and directories, and those that have such a name.

    Raises ScenarioError, with the probable name, for a text that names none.
    """
    directories = scenario_directories(Path.cwd())
    return iter_scenarios(
        [text if os.path.lexists(text) else find_scenario(text, directories=directories) for text in texts]
    )


def pick_cells(loaded: Sequence[LoadedScenario], named: Sequence[str]) -> list[tuple[LoadedScenario, Cell]]:
    """Return the cells to work on: all, or the named ones; a name may be in several scenarios.

    Raises click.UsageError, with the probable name, for a name that is in none.
    """
    pairs = [(scenario, cell) for scenario in loaded for cell in scenario.cells]
    if not named:
        return pairs
    names = [cell.name for _, cell in pairs if cell.name]
    if not names:
        raise click.UsageError(
            f"no cell {named[0]!r}: there is no matrix in {', '.join(scenario.path.name for scenario in loaded)}"
        )
    for name in named:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names))}"
            raise click.UsageError(f"no cell {name!r}; {hint}")
    return [pair for pair in pairs if pair[1].name in named]
