"""The statements of a run, the deciding ones first, each with its evidence and its line of the scenario."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from chaos.plan.model import Plan
from chaos.report.page.excerpts import Excerpts, scenario_line
from chaos.report.page.facts import statement_facts
from chaos.report.page.model import Excerpt, Place, Statement
from chaos.report.result import CheckResult, Result

_FIRST = {"fail": 0, "unknown": 1, "pass": 2}
_PART_OF_CHECK = {"consistency": "replica_groups"}
"""The part of a plan that a check follows from, where it does not have the check's name."""


def statements_of(run_dir: Path, plan: Plan, result: Result) -> tuple[tuple[Statement, ...], dict[str, Excerpt]]:
    """Return the statements in the order of the page, and the lines around their evidence by key."""
    excerpts = Excerpts(run_dir)
    statements = tuple(_statement(check, plan, excerpts) for check in sorted(result.checks, key=_when))
    return statements, excerpts.excerpts


def _when(check: CheckResult) -> tuple[int, bool, int]:
    """Order statements by their verdict, and the deciding ones by time."""
    return _FIRST[check.verdict], check.order is None, check.order or 0


def _statement(check: CheckResult, plan: Plan, excerpts: Excerpts) -> Statement:
    quoted = tuple(_quoted(check))
    return Statement(
        check.name,
        check.verdict,
        check.expected,
        check.seen,
        check.order,
        _line(check, plan),
        tuple(Place(place, excerpts.key(place, quoted)) for place in check.where),
        tuple(statement_facts(check.data)),
    )


def _line(check: CheckResult, plan: Plan) -> int | None:
    """Return the line of the scenario that a statement names, else that of the part of the plan that it is about."""
    line = scenario_line(check.where)
    if line is not None:
        return line
    data, part = check.data, _PART_OF_CHECK.get(check.name, check.name)
    parts = [] if data.fault is None else [f"faults.{data.fault}"]
    parts += [] if data.phase is None else [f"{part}.{data.phase}"]
    parts += [part, f"{part}.total"]
    return next((plan.explanation.lines[name] for name in parts if name in plan.explanation.lines), None)


def _quoted(check: CheckResult) -> Iterator[str]:
    """Yield the texts of a statement that its evidence may hold."""
    yield from check.data.parameters[:1]
    yield from (value for value in (check.data.expected, check.data.seen) if isinstance(value, str))
