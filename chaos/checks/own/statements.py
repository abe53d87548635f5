"""Reads the statements of a scenario's own checks from the history. Their code is not executed."""

from __future__ import annotations

from typing import cast

from chaos.evidence.finding import Finding, Verdict
from chaos.history.reader import HARNESS, History

_EXPECTED = "the check comes to an end"
_VERDICTS = ("pass", "fail", "unknown")


def own_statements(history: History) -> list[Finding]:
    """Return the statements of every own check that the run was to make; one without a statement is unknown."""
    start = history.first("run.start", writer=HARNESS)
    names = start.data.get("checks", []) if start is not None else []
    findings: list[Finding] = []
    for name in names if isinstance(names, list) else []:
        if isinstance(name, str):
            findings += _of_check(name, history)
    return findings


def _of_check(name: str, history: History) -> list[Finding]:
    findings = []
    for event in history.select("check.statement", writer=HARNESS, check=name):
        verdict, where = event.data.get("verdict"), event.data.get("where")
        expected, seen = str(event.data.get("expected", "")), str(event.data.get("seen", ""))
        places = tuple(map(str, where)) if isinstance(where, list) else ()
        known = cast(Verdict, verdict) if verdict in _VERDICTS else "unknown"
        findings.append(Finding(name, known, expected, seen, places or (event.source,)))
    end = history.last("check.end", writer=HARNESS, check=name)
    if end is None:
        return [*findings, Finding(name, "unknown", _EXPECTED, "the run has recorded no end of it")]
    if end.data.get("error") is not None:
        return [*findings, Finding(name, "unknown", _EXPECTED, str(end.data["error"]), (end.source,))]
    return findings or [
        Finding(name, "unknown", "the check makes a statement about the run", "it made none", (end.source,))
    ]
