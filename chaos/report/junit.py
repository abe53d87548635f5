"""junit.xml: one test suite for the run, one test case for each check, the phases as properties.

A check takes no time of its own: the run's seconds are shared by its cases, since readers add those up.
"""

from __future__ import annotations

from io import BytesIO
from itertools import groupby
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from chaos.evidence.finding import worst
from chaos.evidence.text import readable
from chaos.report.files import replace_file
from chaos.report.result import CheckResult, Headline, Result

FILE = "junit.xml"


def junit(result: Result) -> JUnitXml:
    """Return the result as JUnit XML: fail is a failure, unknown an error, a check excluded by the plan is skipped."""
    name = readable(f"{result.scenario}[{result.cell}]" if result.cell else result.scenario)
    suite = TestSuite(name)
    suite.add_property("verdict", result.verdict)
    if result.reason:
        suite.add_property("reason", readable(result.reason))
    if result.headline is not None:
        suite.add_property("headline", readable(result.headline.text))
        suite.add_property("headline.id", readable(result.headline.id))
    if result.recovery.mechanism is not None:
        suite.add_property("recovery.mechanism", readable(result.recovery.mechanism))
    for phase, seconds in result.recovery.phases.items():
        suite.add_property(readable(f"recovery.{phase}"), _seconds(seconds))
    if result.recovery.phases:
        suite.add_property("recovery.total", _seconds(result.recovery.total))
    stated = {check.name for check in result.checks}
    total = result.made.seconds or 0.0
    share = total / max(1, len(stated))
    for check, group in groupby(result.checks, key=lambda row: row.name):
        suite.add_testcase(_case(name, check, list(group), share, result.headline))
    for left_out in result.not_checked:
        if left_out["name"] not in stated:
            case = TestCase(readable(left_out["name"]), classname=name, time=0)
            case.result = [Skipped(readable(f"{left_out['what']}: {left_out['reason']}"))]
            suite.add_testcase(case)
    suite.update_statistics()  # type: ignore[no-untyped-call]
    suite.time = total
    if result.made.started is not None:
        suite.timestamp = result.made.started
    xml = JUnitXml("chaos")
    xml.add_testsuite(suite)
    xml.update_statistics()  # type: ignore[no-untyped-call]
    xml.time = total
    return xml


def write_junit(result: Result, run_dir: Path) -> Path:
    """Write junit.xml in one piece. Raises OSError."""
    buffer = BytesIO()
    junit(result).write(buffer, pretty=True)
    path = run_dir / FILE
    replace_file(path, buffer.getvalue())
    return path


def _case(suite: str, check: str, findings: list[CheckResult], seconds: float, headline: Headline | None) -> TestCase:
    case = TestCase(readable(check), classname=suite, time=seconds)
    verdict = worst([result.verdict for result in findings])
    if verdict != "pass":
        decisive = [result for result in findings if result.verdict == verdict]
        kind = Failure if verdict == "fail" else Error
        message = f"expected: {decisive[0].expected}; seen: {decisive[0].seen}"
        parts = [_text(result) for result in findings if result.verdict != "pass"]
        if headline is not None and headline.check == check:
            message = headline.text
            parts.insert(0, headline.text)
        outcome = kind(readable(message), verdict)
        outcome.text = readable("\n\n".join(parts))
        case.result = [outcome]
    return case


def _text(check: CheckResult) -> str:
    lines = [f"{check.verdict}", f"expected: {check.expected}", f"seen:     {check.seen}"]
    return "\n".join([*lines, *(f"where:    {place}" for place in check.where)])


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6f}"
