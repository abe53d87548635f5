"""The checks by name, in the order in which a report shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points

from chaos.checks import (
    checkpoint,
    consistency,
    hygiene,
    injection,
    loss,
    mechanism,
    record,
    recovery,
    resume,
    run,
)
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.finding import Finding
from chaos.history.reader import History
from chaos.plan.model import Plan

Check = Callable[[Plan, History, Artifacts], list[Finding]]
"""A check: pure, reads only what it is given."""

GROUP = "chaos.checks"
"""Entry point group by which another package adds a check."""

PRECONDITIONS = (record.NAME, run.NAME, injection.NAME)
"""Checks that decide whether the others can blame anybody: a sound record, a finished run, the planned fault."""

BUILT_IN: dict[str, Check] = {
    record.NAME: record.check,
    run.NAME: run.check,
    injection.NAME: injection.check,
    mechanism.NAME: mechanism.check,
    checkpoint.NAME: checkpoint.check,
    resume.NAME: resume.check,
    loss.NAME: loss.check,
    consistency.NAME: consistency.check,
    recovery.NAME: recovery.check,
    hygiene.NAME: hygiene.check,
}


def all_checks(points: Iterable[EntryPoint] | None = None) -> dict[str, Check | EntryPoint]:
    """The built-in checks, then those of other packages by name. The latter are not imported yet.

    ``points`` stands in for the installed entry points. A name of a built-in check cannot be taken.
    """
    found: dict[str, Check | EntryPoint] = dict(BUILT_IN)
    for point in sorted(entry_points(group=GROUP) if points is None else points, key=lambda one: one.name):
        found.setdefault(point.name, point)
    return found
