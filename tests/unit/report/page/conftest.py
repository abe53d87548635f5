"""Pages of runs that were made without a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.checks.judge import judge
from chaos.report.analyze import result_of
from chaos.report.page.data import page_of
from chaos.report.page.model import PageData
from chaos.report.result import Result
from tests.kit.runs.good_run import GoodRun, good_run

PageOf = Callable[[GoodRun], PageData]
ResultOf = Callable[[GoodRun], Result]


@pytest.fixture
def run() -> GoodRun:
    return good_run()


@pytest.fixture
def result_of_run(tmp_path: Path) -> ResultOf:
    """Write a run, judge it, and return its result."""

    def result(run: GoodRun) -> Result:
        directory = run.write(tmp_path / "run")
        return result_of(directory, judge(directory))

    return result


@pytest.fixture
def page(tmp_path: Path) -> PageOf:
    """Write a run, judge it, and return the data of its page."""

    def page(run: GoodRun) -> PageData:
        directory = run.write(tmp_path / "run")
        judgement = judge(directory)
        return page_of(directory, judgement, result_of(directory, judgement))

    return page
