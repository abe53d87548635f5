"""What the tests of the checks ask of a judgement."""

from __future__ import annotations

from collections.abc import Callable

from chaos.checks.finding import Finding
from chaos.checks.judge import Judgement
from tests.unit.good_run import GoodRun

Judge = Callable[[GoodRun], Judgement]


def said(judgement: Judgement, check: str, verdict: str, text: str) -> list[Finding]:
    """Findings of a check with that verdict, in whose words ``text`` occurs."""
    return [
        one
        for one in judgement.findings
        if one.check == check and one.verdict == verdict and text in f"{one.expected} | {one.seen}"
    ]
