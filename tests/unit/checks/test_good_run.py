"""A good recovery passes, and every check has something to say about it."""

from __future__ import annotations

from good_run import GoodRun
from judging import Judge

from chaos.checks.registry import BUILT_IN


def test_a_good_recovery_passes_every_check(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert [one for one in judgement.findings if one.verdict != "pass"] == []
    assert judgement.verdict == "pass"
    assert {one.check for one in judgement.findings} == set(BUILT_IN)
