"""Each statement leads to the line of the scenario that it follows from, and to the value in its evidence."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun, float_hex_next
from tests.unit.report.page.conftest import PageOf


def test_a_statement_without_a_line_of_its_own_has_that_of_its_part_of_the_plan(run: GoodRun, page: PageOf) -> None:
    saved = run.saved[0]
    name = next(name for name in saved.state if name.endswith("weight"))
    saved.state = {**saved.state, name: saved.state[name] + 1}
    cause = page(run).statements[0]
    assert (cause.check, cause.verdict) == ("checkpoint", "fail")
    assert not [place for place in cause.where if place.text.startswith("scenario.yaml")]
    assert cause.line == run.plan.explanation.lines["checkpoint"]


def test_the_line_that_a_statement_names_counts_first(run: GoodRun, page: PageOf) -> None:
    event = run.only("digest", attempt="resume", rank=0, step=8)
    event["loss"] = float_hex_next(event["loss"])
    failing = next(statement for statement in page(run).statements if statement.verdict == "fail")
    assert (failing.check, failing.line) == ("loss", run.plan.explanation.lines["loss"])


def test_a_statement_about_a_fault_has_the_line_of_the_fault(run: GoodRun, page: PageOf) -> None:
    lines = {**run.plan.explanation.lines, "faults.kill-1": 14}
    run.replan(lines=lines)
    injection = next(statement for statement in page(run).statements if ("fault", "kill-1") in statement.facts)
    assert injection.line == 14
