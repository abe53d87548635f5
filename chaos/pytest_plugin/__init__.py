"""``pytest scenarios/``: every matrix cell of a scenario file is a test.

Collects YAML files whose first key is ``chaos``. Each cell runs ``chaos run`` in a process of its own and is judged by
its output. The run happens in the test's set-up and the judgement in its call, so that pytest itself keeps a
verdict *unknown* and a failure of the harness (errors) apart from a verdict *fail* (a failure).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.pytest_plugin.options import UNUSED, add_options, check_options
from chaos.pytest_plugin.own_files import is_own_file
from chaos.pytest_plugin.scenario_file import ScenarioFile
from chaos.pytest_plugin.scenario_item import ScenarioItem


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    check_options(config)


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
