"""The checks by name, in the order in which a report shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint

from chaos.checks.checkpoint import check as checkpoint
from chaos.checks.consistency import check as consistency
from chaos.checks.history import check as record
from chaos.checks.hygiene import check as hygiene
from chaos.checks.injection import check as injection
from chaos.checks.loss import check as loss
from chaos.checks.mechanism import check as mechanism
from chaos.checks.names import added_checks
from chaos.checks.recovery import check as recovery
from chaos.checks.resume import check as resume
from chaos.checks.run import check as run
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.finding import Finding
from chaos.history.reader import History
from chaos.plan.model import Plan

Check = Callable[[Plan, History, Artifacts], list[Finding]]
"""A check: a pure function that reads only its arguments."""

PRECONDITIONS = (record.NAME, run.NAME, injection.NAME)
"""Checks that decide whether the others can blame a component: a sound record, a finished run, the planned fault."""

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
    """Return the built-in checks, then the checks of other packages by name. The latter are not imported yet.

    ``points`` stands in for the installed entry points. A name of a built-in check cannot be taken.
    """
    checks: dict[str, Check | EntryPoint] = dict(BUILT_IN)
    for point in added_checks(points):
        checks.setdefault(point.name, point)
    return checks
