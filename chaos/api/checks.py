"""The interface of your own checks: the plan and the history of a run, and three kinds of statements.

A check is a function in a Python file beside a scenario, which names it (``checks: [losses:falls]``)::

    from chaos.api.checks import Finding, History, Plan, failed, passed

    def falls(plan: Plan, history: History) -> Finding:
        digests = history.select("digest", rank=0)
        ...
        return passed("the loss falls", "from 2.3 to 0.4", digests[-1].source)

docs/guides/own-code.md describes the types.
"""

from __future__ import annotations

from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

__all__ = ["Event", "Finding", "History", "Plan", "failed", "passed", "unknown"]


def passed(expected: str, seen: str, *where: str) -> Finding:
    """Return the statement that the expectation was met. ``where`` lists places, such as the source of an event."""
    return Finding("", "pass", expected, seen, where)


def failed(expected: str, seen: str, *where: str) -> Finding:
    """Return the statement that the expectation was not met, with the observation that contradicts it."""
    return Finding("", "fail", expected, seen, where)


def unknown(expected: str, seen: str, *where: str) -> Finding:
    """Return the statement that the evidence which would decide is missing."""
    return Finding("", "unknown", expected, seen, where)
