"""What the tests of the checks ask of a judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from chaos.checks.judge import Judgement
from chaos.evidence.finding import Finding
from tests.kit.runs.good_run import GoodRun, Mutate, record

Judge = Callable[[GoodRun], Judgement]


def said(judgement: Judgement, check: str, verdict: str, text: str) -> list[Finding]:
    """Findings of a check with that verdict, in whose words ``text`` occurs."""
    return [
        finding
        for finding in judgement.findings
        if finding.check == check and finding.verdict == verdict and text in f"{finding.expected} | {finding.seen}"
    ]


def verdicts(judgement: Judgement, check: str) -> set[str]:
    """What a check says: the verdicts of all its findings."""
    return {finding.verdict for finding in judgement.findings if finding.check == check}


def not_passed(judgement: Judgement) -> list[tuple[str, str, str, str]]:
    """Verdict, check, what was expected and what was seen, of each finding that is no pass; for messages of tests."""
    return [
        (finding.verdict, finding.check, finding.expected, finding.seen)
        for finding in judgement.findings
        if finding.verdict != "pass"
    ]


WITHOUT_DATA = {
    "no process, port or unfinished file is left | the run's private directory is left": "it lies outside the run",
    "no process, port or unfinished file is left | ports still open": "a port is of no rank, and stands as the value",
    "the run has left nothing on its nodes": "a platform names what is left in its own words",
}
"""Failures that are about no rank, step, phase, fault or file, by how they begin, and why."""


def without_data(findings: Iterable[Finding]) -> list[str]:
    """Failures that name as data neither ranks nor anything else that they are about."""
    return [
        text
        for finding in findings
        if finding.verdict == "fail" and not finding.data.has_subject
        if not (text := f"{finding.expected} | {finding.seen}").startswith(tuple(WITHOUT_DATA))
    ]


def cases_of(spoilt: Mapping[str, Sequence[tuple[Mutate, str]]]) -> list[Any]:
    """A test's parameters ``check, spoil, reason`` for what spoils a run and what each check says of it then."""

    def named(check: str, spoil: Mutate, number: int) -> str:
        return f"{check}-{getattr(spoil, '__name__', '')}-{number}".replace("<lambda>", "")

    return [
        pytest.param(check, spoil, reason, id=named(check, spoil, number))
        for check, cases in spoilt.items()
        for number, (spoil, reason) in enumerate(cases, 1)
    ]


def resumed_job_dies(given_up: float) -> Mutate:
    """Rank 1 ends with a code of its own, at 25 s; at ``given_up`` the harness gives the resumed job up for an end."""

    def spoil(run: GoodRun) -> None:
        error = "rank 1 (exit code 1) ended before every rank had begun its first step"
        run.only("rank.exit", attempt="resume", rank=1).update(code=1)
        run.only("run.end")["error"] = error
        run.add("harness", record(given_up, "job.failed", attempt="resume", reason=error))

    return spoil
