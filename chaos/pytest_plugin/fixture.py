"""The fixture ``chaos``: scenarios that a test of the user's own runs and judges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.api import Chaos, ChaosError, Run
from chaos.pytest_plugin import needs
from chaos.pytest_plugin.attachments import Attachment, attach_to_allure, attachments
from chaos.pytest_plugin.command import cores_of, with_parent
from chaos.pytest_plugin.live_lines import live_lines
from chaos.pytest_plugin.options import inventory_of, reports_of
from chaos.pytest_plugin.properties import properties

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

FILES: pytest.StashKey[list[Attachment]] = pytest.StashKey()
"""The files of a test's runs, for reports of other plugins."""


class ChaosOfTest(Chaos):
    """Runs the scenarios of one test, with the options of the plugin.

    A run that the machine cannot make skips the test. The runs are properties of the test, and their pages are
    attached; what a run that does not pass has to say stands in the report of a failure.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        config, item = request.config, request.node
        self._config, self._item = config, item
        super().__init__(
            directory=item.path.parent,
            reports=reports_of(config),
            sdk=config.getoption("--chaos-sdk"),
            platform=config.getoption("--chaos-platform"),
            inventory=inventory_of(config),
            cores=cores_of(),
            allow_checks=config.getoption("--chaos-allow-checks"),
            allow_hooks=config.getoption("--chaos-allow-hook"),
            on_line=live_lines(config, item.name),
        )

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return with_parent(self._config, arguments)

    def _begins(self, path: Path, cell: Cell) -> None:
        if missing := needs.unmet_needs(cell.scenario, path.parent, reports_of(self._config)):
            pytest.skip("this machine lacks " + ", ".join(missing))

    def _ended(self, run: Run) -> None:
        result = {**run.result, "run": run.name, "directory": str(run.directory)}
        self._item.user_properties.extend(properties(result))
        files = list(attachments([result]))
        self._item.stash.setdefault(FILES, []).extend(files)
        attach_to_allure(self._config, files)
        if run.verdict != "pass":
            self._item.add_report_section("call", "chaos", f"{run}\n")

    def _failed(self, error: ChaosError, errors: str) -> None:
        self._item.add_report_section("call", "chaos", errors)


@pytest.fixture
def chaos(request: pytest.FixtureRequest) -> ChaosOfTest:
    """Run scenarios: ``chaos.run("kill-rank", victim=1)`` returns the run with its verdict (docs/guides/python.md)."""
    return ChaosOfTest(request)
