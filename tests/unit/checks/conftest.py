"""Fixtures of the checks' tests."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from chaos.checks.judge import Judgement, judge
from chaos.checks.registry import Check, all_checks
from tests.kit.runs.good_run import GoodRun, good_run
from tests.unit.checks.judging import Judge, without_data

Checks = dict[str, Check | EntryPoint]


@pytest.fixture
def run() -> GoodRun:
    return good_run()


@pytest.fixture(scope="session")
def checks() -> Checks:
    """The registered checks. They are looked for once: to ask every installed package takes as long as two checks."""
    return all_checks()


@pytest.fixture
def judged(tmp_path: Path, checks: Checks) -> Judge:
    """Write a run and judge it. Whatever fails says as data what it is about."""

    def write_and_judge(run: GoodRun) -> Judgement:
        judgement = judge(run.write(tmp_path / "run"), checks)
        assert without_data(judgement.findings) == []
        return judgement

    return write_and_judge
