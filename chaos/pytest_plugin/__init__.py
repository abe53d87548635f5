"""``pytest scenarios/``: every matrix cell of a scenario file is a test.

Collects YAML files whose first key is ``chaos``. Each cell runs ``chaos run`` in a process of its own and is judged by
its output. The run is the test's call, so its time is the test's time. A verdict *fail* is a failure; a verdict
*unknown* and a failure of the harness are errors.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from chaos.pytest_plugin import unknown
from chaos.pytest_plugin.attachments import attach_to_html
from chaos.pytest_plugin.fixture import FILES, chaos
from chaos.pytest_plugin.ids import with_present_ids
from chaos.pytest_plugin.options import UNUSED, add_options, check_options, reports_of
from chaos.pytest_plugin.own_files import is_own_file
from chaos.pytest_plugin.scenario_file import ScenarioFile
from chaos.pytest_plugin.scenario_item import ScenarioItem

__all__ = ["chaos"]  # the fixture; pytest finds the hooks by their names


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and read ids of earlier versions before anything is collected."""
    check_options(config)
    config.args[:] = with_present_ids(config.args, config.invocation_params.dir)
    config.pluginmanager.register(unknown.JUnitErrors(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the directories of runs, which hold copies of scenarios and files of jobs, and the files of chaos."""
    from chaos.scenario.recorded import is_run

    return True if is_own_file(collection_path, config) or is_run(collection_path) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect scenario files, and no other YAML files."""
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    from chaos.scenario.find import is_scenario_file

    return ScenarioFile.from_parent(parent, path=file_path) if is_scenario_file(file_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a setting that no scenario has: it is a typing error."""
    if (unused := config.stash[UNUSED]) and any(isinstance(item, ScenarioItem) for item in items):
        raise pytest.UsageError(f"--chaos-set: no collected scenario has a variable {', '.join(sorted(unused))}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark the report of a run without a verdict, and give the files of a run to pytest-html."""
    report = yield
    if isinstance(item, ScenarioItem):
        unknown.mark(report, call)
    if call.when == "call":
        files = item.attachments() if isinstance(item, ScenarioItem) else item.stash.get(FILES, [])
        attach_to_html(item.config, report, files)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """Count a run without a verdict among the errors."""
    return ("error", "E", "ERROR") if unknown.is_unknown(report) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say where the runs are."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    runs = {value for report in reports for name, value in getattr(report, "user_properties", ()) if name == "run"}
    if runs:
        terminalreporter.write_line(f"chaos: {len(runs)} {'run' if len(runs) == 1 else 'runs'} in {reports_of(config)}")
