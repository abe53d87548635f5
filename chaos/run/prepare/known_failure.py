"""Whether a fail is the known finding's: in the checks that its scenario names (``failing``), and in no other.

A finding may hold with one SDK only; a run with the other one has to pass like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from chaos.checks.names import check_names
from chaos.jobs.kind import Simulated
from chaos.report.known_finding import failed_beyond, signatures
from chaos.run.prepare.versions import sdk_named
from chaos.scenario.errors import Problem, printable, quote, suggest
from chaos.scenario.load import Cell
from chaos.scenario.models.scenario import Finding, Scenario

COMPARISON = "comparison"
"""Stands among the checks for the comparison of two cells."""


def sdk_of(result: Mapping[str, Any]) -> str:
    """Return ``standin`` or ``vendor``: the SDK of a run, by the simulated parts in its result."""
    return sdk_named(Simulated(stand_in["part"], stand_in["layer"]) for stand_in in result.get("simulated", ()))


def holding(scenario: Scenario, sdks: Iterable[str]) -> Finding | None:
    """Return the scenario's finding where it holds in runs with these SDKs, None where there is none or it does not."""
    known = scenario.known
    return None if known is None or (known.sdk is not None and {*sdks} != {known.sdk}) else known


def failing_by(scenario: Scenario, sdks: Iterable[str]) -> tuple[str, ...]:
    """Return the checks in which runs with these SDKs may fail by the scenario's finding."""
    known = scenario.known
    more = known.with_vendor if known is not None and {*sdks} == {"vendor"} else ()
    return (*scenario.failing, *more)


def failing_checks(
    results: Iterable[Mapping[str, Any]], comparisons: Iterable[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
    """Return the checks that fail in the results of ``chaos run --json``, each once, in the order of the report.

    A statement that bears the signature of a known finding does not count: see :func:`by_signature`.
    """
    names = list(failed_beyond(_checks(results)))
    names += [COMPARISON for comparison in comparisons if comparison.get("verdict") == "fail"]
    return tuple(dict.fromkeys(names))


def by_signature(
    results: Iterable[Mapping[str, Any]], comparisons: Iterable[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
    """Return the findings whose signatures explain that these results fail; none where anything else fails.

    Nothing may be unknown beside them.
    """
    if any(comparison.get("verdict") != "pass" for comparison in comparisons):
        return ()
    return signatures(_checks(results))


def _checks(results: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [check for result in results for check in result.get("checks", ())]


def unexpected(failing: Collection[str], expected: Collection[str]) -> tuple[str, ...]:
    """Return the failing checks that the finding does not explain; ``no check`` for a fail in no check at all."""
    if not failing:
        return ("no check",)
    return tuple(name for name in failing if name not in expected)


def unknown_checks(cell: Cell, source: str) -> Iterator[Problem]:
    """Yield the names in ``failing`` that no check has."""
    scenario = cell.scenario
    if not scenario.failing:
        return
    known = [*check_names(), *([] if scenario.compare is None else [COMPARISON])]
    named = [(f"failing.{number}", name) for number, name in enumerate(scenario.failing)]
    if scenario.known is not None:
        named += [(f"finding.with_vendor.{number}", name) for number, name in enumerate(scenario.known.with_vendor)]
    for path, name in named:
        if name not in known:
            line, column = cell.lines.nearest(path)
            message = f"{path.rpartition('.')[0].rpartition('.')[2]} names no check {quote(name)}"
            yield Problem(printable(source), line, column, message, name, suggest(name, known, "checks"))
