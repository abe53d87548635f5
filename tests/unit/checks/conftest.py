"""Fixtures of the checks' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.checks.judge import judge
from tests.unit.checks.judging import Judge
from tests.unit.good_run import GoodRun, good_run


@pytest.fixture
def run() -> GoodRun:
    return good_run()


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Write a run and judge it."""
    return lambda run: judge(run.write(tmp_path / "run"))
