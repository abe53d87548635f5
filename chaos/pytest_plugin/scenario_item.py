"""One test: a matrix cell of a scenario, or two that are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chaos.pytest_plugin import needs
from chaos.pytest_plugin.command import run_command
from chaos.pytest_plugin.description import describe, describe_comparison
from chaos.pytest_plugin.options import reports_of
from chaos.pytest_plugin.outcomes import FailedElsewhere, NoVerdict, ScenarioFailed
from chaos.pytest_plugin.output import read_output
from chaos.pytest_plugin.process import run_to_end
from chaos.pytest_plugin.properties import properties
from chaos.pytest_plugin.status_line import status_line

if TYPE_CHECKING:
    from chaos.scenario.load import Cell
    from chaos.scenario.models.scenario import Finding


class ScenarioItem(pytest.Item):
    """One matrix cell of a scenario, or two that are compared: both are run and judged, and then the pair."""

    def __init__(self, *, cells: tuple[Cell, ...], settings: dict[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = cells
        self.cell = cell = cells[0]
        self.settings = settings
        self.results: Sequence[Mapping[str, Any]] = ()
        self.comparisons: Sequence[Mapping[str, Any]] = ()
        # `-k` has no `=`, so that values are selected as `-k victim-2`.
        self.extra_keyword_matches.update(
            f"{name}-{value}" for other_cell in cells for name, value in other_cell.values.items()
        )
        for tag in cell.scenario.tags:
            # Tags need not be registered in the project's configuration: the scenario file declares them.
            self.config.addinivalue_line("markers", f"{tag}: a tag of chaos scenarios")
            self.add_marker(tag)

    def setup(self) -> None:
        """Run the scenario. Skips if the machine does not meet a need; raises if there is no verdict."""
        if self.config.getoption("setuponly", False):
            return
        if missing := needs.unmet_needs(self.cell.scenario, reports_of(self.config)):
            pytest.skip("this machine lacks " + ", ".join(missing))
        with status_line(self.config, reports_of(self.config)):
            status, output, errors = run_to_end(self.command(), self.config.rootpath)
        if errors:
            self.add_report_section("setup", "stderr", errors)
        self.results, self.comparisons = read_output(self.name, len(self.cells), status, output, errors)
        for cell, result in zip(self.cells, self.results, strict=False):
            place = f"[{cell.name}]" if len(self.cells) > 1 else ""
            self.user_properties.extend((f"{name}{place}", value) for name, value in properties(result))
        if self._verdict() == "unknown":
            raise NoVerdict(self._describe("unknown"), pytrace=False)
        # Only now, since a finding may hold with one SDK only, and the result names the SDK of the run.
        if (known := self._known()) is not None:
            where = ", ".join(self._failing()) + (f" with the SDK {known.sdk}" if known.sdk else "")
            reason = f"{known.id}: known defect, fails in {where}; see docs/findings.md"
            self.add_marker(pytest.mark.xfail(reason=reason, raises=ScenarioFailed, strict=known.always))

    def runtest(self) -> None:
        """Judge the run. Raises ScenarioFailed for verdict fail, FailedElsewhere beyond its known finding."""
        if self._verdict() == "pass":
            return
        from chaos.run.prepare.known_failure import failing_checks, unexpected

        text, failing = self._describe("fail"), self._failing()
        others = unexpected(failing_checks(self.results, self.comparisons), failing)
        if others and (known := self._known()) is not None:
            explanation = f"{known.id} fails in {', '.join(failing)}; this failed in {', '.join(others)} too"
            raise FailedElsewhere(f"{text}\n{explanation}", pytrace=False)
        raise ScenarioFailed(text, pytrace=False)

    def _failing(self) -> tuple[str, ...]:
        """Return the checks in which it may fail by its finding."""
        from chaos.run.prepare.known_failure import failing_by, sdk_of

        return failing_by(self.cell.scenario, map(sdk_of, self.results))

    def _known(self) -> Finding | None:
        """Return the scenario's finding if it holds with the SDK of the run."""
        from chaos.run.prepare.known_failure import holding, sdk_of

        return holding(self.cell.scenario, map(sdk_of, self.results))

    def _verdict(self) -> str:
        verdicts = {result["verdict"] for result in (*self.results, *self.comparisons)}
        return next((verdict for verdict in ("fail", "unknown") if verdict in verdicts), "pass")

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the scenario file, its first line, and the name of the cell."""
        return self.path, 0, self.name

    def command(self) -> list[str]:
        """Return the command that runs the cells."""
        return run_command(self.config, self.path, self.cells, self.settings)

    def _describe(self, verdict: str) -> str:
        scenario = self._shown(self.path)
        lines = [describe(result, scenario=scenario) for result in self.results if result["verdict"] != "pass"]
        lines += [
            describe_comparison(self.name, comparison)
            for comparison in self.comparisons
            if comparison["verdict"] != "pass"
        ]
        return "\n".join(lines) or f"{self.name}: {verdict}"

    def _shown(self, path: Path) -> str:
        root = self.config.rootpath
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
