"""The files of a run for the reports of other plugins: Allure and pytest-html, where they are in use.

Neither is a dependency. The page of a run is attached always, its logs when the run does not pass.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

MOST_LOGS = 8
MOST_BYTES = 4 << 20
"""Logs larger than this are left out: a report of many tests would hold gigabytes. The page has no limit."""


@dataclass(frozen=True)
class Attachment:
    """A file of a run: its name for a reader, and whether it is a page."""

    path: Path
    name: str
    page: bool


def attachments(results: Sequence[Mapping[str, Any]]) -> Iterator[Attachment]:
    """Yield the files of these results to attach: pages first, then logs, those with the first errors first."""
    from chaos.report.short import PAGE

    runs = [(result, Path(result["directory"])) for result in results]
    for result, directory in runs:
        page = directory / PAGE
        if page.is_file() and not page.is_symlink():
            yield Attachment(page, f"{result['run']}: {PAGE}", page=True)
    for result, directory in runs:
        if result["verdict"] != "pass":
            for path in _logs(result, directory)[:MOST_LOGS]:
                yield Attachment(path, f"{result['run']}: {path.relative_to(directory)}", page=False)


def attach_to_allure(config: pytest.Config, files: Sequence[Attachment]) -> None:
    """Attach the files to Allure's record of the present test, where Allure takes part."""
    if config.pluginmanager.has_plugin("allure_listener") and (allure := _module("allure")) is not None:
        for file in files:
            kind = allure.attachment_type.HTML if file.page else allure.attachment_type.TEXT
            allure.attach.file(str(file.path), name=file.name, attachment_type=kind)


def attach_to_html(config: pytest.Config, report: pytest.TestReport, files: Sequence[Attachment]) -> None:
    """Attach the files to the row of pytest-html: the page as a link, the logs as text."""
    if config.getoption("htmlpath", None) and (html := _module("pytest_html.extras")) is not None:
        extras = list(getattr(report, "extras", []))
        for file in files:
            if file.page:
                extras.append(html.url(file.path.as_uri(), name=file.name))
            else:
                extras.append(html.text(file.path.read_text("utf-8", errors="replace"), name=file.name))
        report.extras = extras  # type: ignore[attr-defined]  # where pytest-html looks for them


def _logs(result: Mapping[str, Any], directory: Path) -> list[Path]:
    """Return the logs of a run that are no links and not too large."""
    erring = [directory / error["file"] for error in result.get("first_errors", ())]
    paths = dict.fromkeys([*erring, *sorted((directory / "logs").glob("*/*.log"))])
    inside = directory / "logs"
    return [path for path in paths if inside in path.parents and ".." not in path.parts and _is_plain(path)]


def _is_plain(path: Path) -> bool:
    """Return whether a log can be attached."""
    try:
        return path.is_file() and not path.is_symlink() and path.stat().st_size <= MOST_BYTES
    except OSError:
        return False


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
