"""A test without a verdict is an error: on pytest's terminal, in JUnit, and in the reports of workers.

pytest calls errors only what goes wrong beside a test. The run is the test itself, so that its time counts, and its
report carries a mark by which these places know it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from chaos.pytest_plugin.outcomes import NoVerdict

if TYPE_CHECKING:
    from _pytest.junitxml import LogXML

_MARK = "chaos_no_verdict"
"""An attribute of the report: xdist hands it on from its workers."""


def mark(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Mark the report of a test that gave no verdict."""
    if call.excinfo is not None and isinstance(call.excinfo.value, NoVerdict):
        setattr(report, _MARK, True)


def is_unknown(report: pytest.TestReport | pytest.CollectReport) -> bool:
    """Return whether this is the report of a test that gave no verdict."""
    return report.failed and bool(getattr(report, _MARK, False))


class JUnitErrors:
    """A plugin that turns the failure of a test without a verdict into an error in JUnit's file."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """Let pytest write the failure, and give it the name of an error."""
        yield
        if is_unknown(report) and (xml := self._xml()) is not None:
            for node in xml.node_reporter(report).nodes:
                if node.tag == "failure":
                    node.tag = "error"
                    xml.stats["failure"] -= 1
                    xml.stats["error"] += 1

    def _xml(self) -> LogXML | None:
        try:
            from _pytest.junitxml import xml_key
        except ImportError:  # a pytest that keeps it elsewhere: the test stays a failure in the file
            return None
        return self._config.stash.get(xml_key, None)
