"""A scenario file and the tests in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from chaos.pytest_plugin import ids
from chaos.pytest_plugin.options import UNUSED, inventory_of, settings_of
from chaos.pytest_plugin.scenario_item import ScenarioItem

if TYPE_CHECKING:
    from chaos.scenario.load import Cell
    from chaos.scenario.names import KnownNames


class ScenarioFile(pytest.File):
    """A scenario file; collects one item for each matrix cell, or for each pair of cells that it compares."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Load the file. A broken one is a collection error that shows the places and no traceback."""
        from chaos.base.registry import RegistryError
        from chaos.scenario.errors import ScenarioError
        from chaos.scenario.pairs import pairs

        try:
            cells, settings = self._load()
        except (ScenarioError, RegistryError) as error:
            raise self.CollectError(str(error)) from None
        groups: Sequence[tuple[Cell, ...]] = pairs(cells) or [(cell,) for cell in cells]
        names = ids.unique(ids.item_name(group[0].scenario.name, [cell.name for cell in group]) for group in groups)
        for name, group in zip(names, groups, strict=True):
            yield ScenarioItem.from_parent(self, name=name, cells=group, settings=settings)

    def _load(self) -> tuple[tuple[Cell, ...], dict[str, str]]:
        from chaos.run.prepare.on_platform import on_platform
        from chaos.run.prepare.prepare import known_names
        from chaos.scenario.load import load_scenario

        names = known_names()
        loaded = load_scenario(self.path, settings={}, names=names)
        known = loaded.cells[0].scenario.variables
        settings = {name: value for name, value in settings_of(self.config).items() if name in known}
        self.config.stash[UNUSED] -= set(settings)
        if settings:
            loaded = load_scenario(self.path, settings=settings, names=names)
        loaded = on_platform(loaded, self._platform(names), inventory_of(self.config))
        return tuple(loaded.cells), settings

    def _platform(self, names: KnownNames) -> str | None:
        """Return the platform in the command line. Raises UsageError for an unknown one."""
        name: str | None = self.config.getoption("--chaos-platform")
        if name is not None and names.platforms is not None and name not in names.platforms:
            known = ", ".join(sorted(names.platforms))
            raise pytest.UsageError(f"--chaos-platform: no platform {name!r}; there are {known}")
        return name
