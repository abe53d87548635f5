"""One test: a matrix cell of a scenario, or two that are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from chaos.api.process import run_to_end
from chaos.pytest_plugin import needs
from chaos.pytest_plugin.attachments import Attachment, attach_to_allure, attachments
from chaos.pytest_plugin.command import run_command
from chaos.pytest_plugin.description import describe, describe_comparison
from chaos.pytest_plugin.ids import earlier_name
from chaos.pytest_plugin.live_lines import live_lines
from chaos.pytest_plugin.options import reports_of
from chaos.pytest_plugin.outcomes import FailedElsewhere, NoVerdict, ScenarioFailed, VerdictFail
from chaos.pytest_plugin.output import read_output
from chaos.pytest_plugin.properties import line_of, properties
from chaos.pytest_plugin.status_line import status_line

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

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
        self.extra_keyword_matches.add(earlier_name(cell.scenario.name, [other_cell.name for other_cell in cells]))
        for tag in cell.scenario.tags:
            # Tags need not be registered in the project's configuration: the scenario file declares them.
            self.config.addinivalue_line("markers", f"{tag}: a tag of chaos scenarios")
            self.add_marker(tag)

    def setup(self) -> None:
        """Skip the test if the machine does not meet a need of the scenario."""
        if self.config.getoption("setuponly", False):
            return
        if missing := needs.unmet_needs(self.cell.scenario, self.path.parent, reports_of(self.config)):
            pytest.skip("this machine lacks " + ", ".join(missing))

    def runtest(self) -> None:
        """Run the scenario and judge it.

        Raises NoVerdict where there is none or it is unknown, ScenarioFailed for verdict fail, and FailedElsewhere for
        a failure beyond the scenario's known finding.
        """
        on_line = live_lines(self.config, self.name)
        with status_line(self.config, reports_of(self.config)):
            status, output, errors = run_to_end(self.command(), self.config.rootpath, on_line)
        if errors:
            self.add_report_section("call", "stderr", errors)
        answer = read_output(self.name, len(self.cells), status, output, errors)
        self.results, self.comparisons = answer.results, answer.comparisons
        self._add_properties()
        attach_to_allure(self.config, self.attachments())
        if self._verdict() == "unknown":
            raise NoVerdict(self._describe("unknown"))
        if by_signature := self._by_signature():
            # Recognised by the run's own evidence, whatever the scenario: not every run shows it.
            self.add_marker(pytest.mark.xfail(reason=by_signature, raises=ScenarioFailed, strict=False))
            raise ScenarioFailed(self._describe("fail"))
        known = self._known()
        # Only now, since a finding may hold with one SDK only, and the result names the SDK of the run.
        if known is not None:
            where = ", ".join(self._failing()) + (f" with the SDK {known.sdk}" if known.sdk else "")
            reason = f"{known.id}: known defect, fails in {where}; see docs/reference/findings.md in the repository"
            self.add_marker(pytest.mark.xfail(reason=reason, raises=ScenarioFailed, strict=known.always))
        if self._verdict() == "fail":
            self._fail(known)

    def attachments(self) -> list[Attachment]:
        """Return the files of the runs that reports of tests show."""
        return list(attachments(self.results))

    def _fail(self, known: Finding | None) -> NoReturn:
        from chaos.run.prepare.known_failure import failing_checks, unexpected

        lines, failing = self._describe("fail"), self._failing()
        others = unexpected(failing_checks(self.results, self.comparisons), failing)
        if others and known is not None:
            explanation = f"{known.id} fails in {', '.join(failing)}; this failed in {', '.join(others)} too"
            raise FailedElsewhere([lines[0], explanation, *lines[1:]])
        raise ScenarioFailed(lines)

    def _add_properties(self) -> None:
        """Add what JUnit shows of the run beside its outcome: first the place of the scenario."""
        first = self.reportinfo()[1] + 1
        line = next((number for result in self.results if (number := line_of(result, 0))), first)
        self.user_properties.extend([("file", self._shown(self.path)), ("line", line)])
        for cell, result in zip(self.cells, self.results, strict=False):
            place = f"[{cell.name}]" if len(self.cells) > 1 else ""
            self.user_properties.extend((f"{name}{place}", value) for name, value in properties(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """Return the text of an outcome alone, with its first line as the message and the scenario as the place."""
        if not isinstance(excinfo.value, (NoVerdict, VerdictFail)):
            return super().repr_failure(excinfo, style)
        shown = excinfo.getrepr(style="value")
        if (crash := shown.reprcrash) is not None:
            path, line, _ = self.reportinfo()
            crash.path, crash.lineno, crash.message = str(path), line + 1, str(excinfo.value).partition("\n")[0]
        return shown

    def _failing(self) -> tuple[str, ...]:
        """Return the checks in which it may fail by its finding."""
        from chaos.run.prepare.known_failure import failing_by, sdk_of

        return failing_by(self.cell.scenario, map(sdk_of, self.results))

    def _by_signature(self) -> str:
        """Return why the runs fail as findings with a signature say; empty where they fail otherwise, or not."""
        from chaos.run.prepare.known_failure import by_signature

        found = by_signature(self.results, self.comparisons)
        place = "see docs/reference/findings.md in the repository"
        return f"{', '.join(found)}: known defect, recognised by its signature; {place}" if found else ""

    def _known(self) -> Finding | None:
        """Return the scenario's finding if it holds with the SDK of the run."""
        from chaos.run.prepare.known_failure import holding, sdk_of

        return holding(self.cell.scenario, map(sdk_of, self.results))

    def _verdict(self) -> str:
        verdicts = {result["verdict"] for result in (*self.results, *self.comparisons)}
        return next((verdict for verdict in ("fail", "unknown") if verdict in verdicts), "pass")

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the scenario file, the line of its name, and the name of the cell."""
        return self.path, max(0, self.cell.lines.nearest("name")[0] - 1), self.name

    def command(self) -> list[str]:
        """Return the command that runs the cells."""
        return run_command(self.config, self.path, self.cells, self.settings)

    def _describe(self, verdict: str) -> list[str]:
        scenario = self._shown(self.path)
        lines: list[str] = []
        for result in self.results:
            lines += describe(result, scenario=scenario) if result["verdict"] != "pass" else []
        for comparison in self.comparisons:
            lines += describe_comparison(self.name, comparison) if comparison["verdict"] != "pass" else []
        return lines or [f"{self.name}: {verdict}"]

    def _shown(self, path: Path) -> str:
        root = self.config.rootpath
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
