"""Two runs side by side: what shrank, what did not, and when nothing can be said."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from chaos.evidence.finding import Verdict
from chaos.plan.parts.comparison import Comparison as Planned
from chaos.report.analyze import analyze
from chaos.report.compare import compare
from chaos.report.result import Making, RecoveryResult, Result, from_json
from chaos.report.side_by_side import print_comparison
from tests.kit.runs.good_run import good_run

SAYS = Planned("memory", {"load": 0.5})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Result]:
    """Two passing runs of cells memory=false and memory=true; the second loads in 1 s in place of 6.5 s."""
    place, found = tmp_path_factory.mktemp("runs"), []
    for cell, load in (("memory=false", 6.5), ("memory=true", 1.0)):
        run = good_run()
        run.replan(cell=cell, comparison=SAYS)
        result = analyze(run.write(place / cell))
        assert result.verdict == "pass", [check for check in result.checks if check.verdict != "pass"]
        found.append(with_figures(result, load=load))
    return found[0], found[1]


def with_figures(result: Result, *, rollback: float | None = None, **phases: float | None) -> Result:
    before = result.recovery
    recovery = RecoveryResult(before.mechanism, {**before.phases, **phases}, before.total, "", rollback)
    return replace(result, recovery=recovery)


def test_a_phase_that_shrank_passes_and_both_figures_are_shown(results: tuple[Result, Result]) -> None:
    comparison = compare(*results)
    assert comparison.verdict == "pass"
    assert comparison.rows["load"] == (6.5, 1.0)
    (statement,) = comparison.statements
    assert statement.seen == "6.500 s without, 1.000 s with"
    assert json.loads(json.dumps(comparison.to_json()))["statements"][0]["measure"] == "load"


def test_runs_with_other_values_of_a_variable_are_not_compared(results: tuple[Result, Result]) -> None:
    first, second = (
        replace(result, made=Making(variables={"memory": axis, "batch": batch}))
        for result, axis, batch in zip(results, (False, True), ("small", "enormous"), strict=True)
    )
    (statement,) = compare(first, second).statements
    assert (statement.verdict, statement.seen) == ("unknown", "the runs differ in the variable batch")
    same = replace(second, made=Making(variables={"memory": True, "batch": "small"}))
    assert compare(first, same).verdict == "pass"
    assert compare(first, replace(second, made=Making())).verdict == "pass"


def test_a_phase_that_did_not_shrink_fails(results: tuple[Result, Result]) -> None:
    first, second = results
    assert compare(first, with_figures(second, load=3.26)).verdict == "fail"
    assert compare(first, with_figures(second, load=3.25)).verdict == "pass"


@pytest.mark.parametrize(
    ("load", "errors", "verdict"),
    [(3.0, (0.2, 0.1), "pass"), (3.1, (0.2, 0.1), "unknown"), (3.4, (0.2, 0.1), "unknown"), (3.5, (0.2, 0.1), "fail")],
)
def test_a_difference_within_the_error_of_the_clocks_is_unknown(
    results: tuple[Result, Result], load: float, errors: tuple[float, float], verdict: str
) -> None:
    """The second may be half of 6.5 s; both were measured between clocks of several hosts."""
    first, second = results[0], with_figures(results[1], load=load)
    first, second = (
        replace(result, recovery=replace(result.recovery, errors={"load": error}))
        for result, error in zip((first, second), errors, strict=True)
    )
    assert from_json(json.loads(json.dumps(first.to_json()))) == from_json(first.to_json())
    assert compare(first, second).verdict == verdict


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_phase_is_unknown(results: tuple[Result, Result], which: int) -> None:
    spoilt = [with_figures(result, load=None) if place == which else result for place, result in enumerate(results)]
    comparison = compare(spoilt[0], spoilt[1])
    assert comparison.verdict == "unknown"
    assert "unknown for" in comparison.statements[0].seen


@pytest.mark.parametrize("verdict", ["fail", "unknown"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_run_that_did_not_pass_says_nothing(results: tuple[Result, Result], which: int, verdict: Verdict) -> None:
    spoilt = [replace(result, verdict=verdict) if place == which else result for place, result in enumerate(results)]
    comparison = compare(spoilt[0], spoilt[1])
    assert comparison.verdict == "unknown"
    assert verdict in comparison.statements[0].seen


def test_runs_of_other_jobs_are_not_compared(results: tuple[Result, Result]) -> None:
    first, second = results
    others = [
        replace(second, scenario="another"),
        replace(second, seed=2),
        replace(second, versions={"chaos": "0.2.0"}),
        replace(second, plan={**second.plan, "mechanism": "UCE"}),
        replace(second, plan={**second.plan, "faults": []}),
        replace(second, cell="memory=true,victim=2"),
        replace(second, cell=first.cell),
    ]
    for other in others:
        assert compare(first, other).verdict == "unknown"
    assert compare(first, others[0]).statements[0].seen == "the runs differ in scenario"


def test_what_was_never_there_cannot_shrink(results: tuple[Result, Result]) -> None:
    first, second = (with_figures(result, rollback=0.0) for result in results)
    assert compare(first, second, {"rollback": 0.5}).verdict == "unknown"
    assert compare(first, second, {"rollback": 1.0}).verdict == "pass"


def test_without_a_rule_there_is_no_verdict(results: tuple[Result, Result]) -> None:
    first, second = (replace(result, plan={**result.plan, "comparison": None}) for result in results)
    assert compare(first, second).verdict == "unknown"
    assert compare(first, second, {"load": 0.5}).verdict == "pass"


def test_the_terminal_shows_both_runs_beside_each_other(results: tuple[Result, Result]) -> None:
    out = io.StringIO()
    print_comparison(compare(*results), Console(file=out, width=100))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["kill-rank,", "compared:", "pass"] in lines
    assert ["load", "6.500", "s", "1.000", "s", "-85%"] in lines
    assert any({"memory=false", "memory=true"} <= set(line) for line in lines)
    assert out.getvalue().endswith("simulated: all-reduce at: communicator\n")
