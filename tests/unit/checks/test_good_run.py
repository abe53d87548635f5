"""A good recovery passes, and every check has something to say about it."""

from __future__ import annotations

from pathlib import Path

from chaos.checks.names import BUILT_IN_NAMES
from chaos.checks.registry import BUILT_IN
from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge


def test_a_good_recovery_passes_every_check(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert [finding for finding in judgement.findings if finding.verdict != "pass"] == []
    assert judgement.verdict == "pass"
    assert {finding.check for finding in judgement.findings} == set(BUILT_IN)


def test_the_names_are_known_without_the_checks() -> None:
    assert tuple(BUILT_IN) == BUILT_IN_NAMES


def test_each_check_has_a_file_of_its_name_to_start_with() -> None:
    here = Path(__file__).parent
    assert [name for name in BUILT_IN if not (here / name / f"test_{name}.py").is_file()] == []
