"""Fixtures of the checks' tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from good_run import GoodRun, good_run
from judging import Judge

from chaos.checks.judge import judge


@pytest.fixture
def run() -> GoodRun:
    return good_run()


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """Write a run and judge it."""
    return lambda run: judge(run.write(tmp_path / "run"))
