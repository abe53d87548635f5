"""A good recovery passes, and every check has something to say about it."""

from __future__ import annotations

from chaos.checks.registry import BUILT_IN
from tests.unit.checks.judging import Judge
from tests.unit.good_run import GoodRun


def test_a_good_recovery_passes_every_check(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert [one for one in judgement.findings if one.verdict != "pass"] == []
    assert judgement.verdict == "pass"
    assert {one.check for one in judgement.findings} == set(BUILT_IN)
