"""The reason of a verdict: the first finding to break and its consequences; for an interrupted run, its leftovers."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.checks.history.check import NAME as HISTORY
from chaos.checks.hygiene.check import NAME as HYGIENE
from chaos.checks.hygiene.nodes_left import judge_nodes
from chaos.checks.injection.check import NAME as INJECTION
from chaos.checks.run.check import NAME as RUN
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding, Verdict
from chaos.history.reader import History

BROKEN_OFF = "baseline.interrupted"
"""The event of a run interrupted during its fault-free run: names the fault-free run, and says what became of it."""

_LEFT = ("orphans", "ports", "private_left", "unsearched")
"""Fields of the event ``hygiene`` that list leftovers of the run. Unfinished files lie in its own directory."""


_DEPTH = {RUN: 0, HISTORY: 1, INJECTION: 1}
"""Checks whose unknown statements explain those of the others, the deepest first."""


def broken_in_order(verdict: Verdict, findings: Sequence[Finding], history: History) -> list[Finding]:
    """Return the findings that decide the verdict, the first that broke before its consequences.

    A finding's time is the time of the first event that it points at. A finding that points at no event, since
    something is missing, counts as a consequence of the findings with a time. Where nothing is known, the reason is the
    bad end of the run itself, then a doubtful record or a fault without evidence, which put the rest in doubt.
    """
    if verdict == "pass":
        return []
    moments = {event.source: number for number, event in reversed(list(enumerate(history.events)))}

    def when(finding: Finding) -> tuple[int, int]:
        depth = _DEPTH.get(finding.check, len(_DEPTH)) if verdict == "unknown" else 0
        return depth, next((moments[place] for place in finding.where if place in moments), len(moments))

    return sorted((finding for finding in findings if finding.verdict == verdict), key=when)


def reason_of(verdict: Verdict, broken: Sequence[Finding], history: History) -> str:
    """Return the reason of the verdict, in one line. Empty for a pass."""
    if any(end.data.get("interrupted") is True for end in history.select("run.end")):
        fate = _interrupted(history)
        return fate if verdict != "fail" or not broken else f"{_first(broken)}; {fate}"
    return _first(broken)


def _first(broken: Sequence[Finding]) -> str:
    if not broken:
        return ""
    first, *rest = broken
    text = f"{first.check}: {first.seen} (expected: {first.expected})"
    checks = list(dict.fromkeys(finding.check for finding in rest if finding.check != first.check))
    return f"{text}; then {', '.join(checks)}" if checks else text


def _interrupted(history: History) -> str:
    """Return the fate of an interrupted run, or of its fault-free run where that had not ended."""
    broken_off = history.select(BROKEN_OFF)
    if broken_off and not history.select("attempt.start"):
        return f"interrupted in the fault-free run; {broken_off[-1].data.get('became')}"
    return f"interrupted; {became_of(history)}"


def became_of(history: History) -> str:
    """Return the fate of an interrupted run: each part only where the history proves it."""
    looked, clean_nodes = history.select("hygiene"), _clean_nodes(history)
    parts: list[str] = []
    if not history.select("attempt.start"):
        parts.append("no job was started")
    elif history.select("job.unended") or any(event.data.get("orphans") != [] for event in looked):
        parts.append("processes of the job are left: chaos heal")
    elif looked and clean_nodes:
        parts.append("job ended")
    if failed := history.select("undo.failed"):
        parts.append(f"not everything could be undone ({failed[0].data.get('why')}): chaos heal")
    elif not history.select("fault.injecting") and not history.select("fault.landed"):
        parts.append("no fault was made")
    elif looked:
        parts.append("faults undone")
    if not looked:
        parts.append("leftovers were not searched for: chaos heal")
    elif clean_nodes and not any(event.data.get(key) for event in looked for key in _LEFT):
        parts.append("nothing left")
    else:
        parts.append("something is left, or was not searched for: see the check hygiene")
    return "; ".join(parts)


def _clean_nodes(history: History) -> bool:
    """Return whether every node of the run was asked, and has nothing left of it."""
    collector = Collector(HYGIENE)
    judge_nodes(history, collector)
    return all(finding.verdict == "pass" for finding in collector.findings())
