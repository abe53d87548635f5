"""junit.xml: one suite a run, one case a check, failures and unknowns apart."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from junitparser import JUnitXml

from chaos.report.analyze import analyze
from chaos.report.junit import junit
from tests.kit.runs.good_run import GoodRun, good_run


@pytest.fixture
def run() -> GoodRun:
    return good_run()


def suite_of(directory: Path) -> ElementTree.Element:
    suite = ElementTree.parse(directory / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    return suite


def outcomes(suite: ElementTree.Element) -> dict[str | None, list[str]]:
    return {case.get("name"): [child.tag for child in case] for case in suite.findall("testcase")}


def test_a_passing_run_has_one_passing_case_for_each_check(run: GoodRun, tmp_path: Path) -> None:
    analyze(run.write(tmp_path))
    suite = suite_of(tmp_path)
    assert outcomes(suite) == {
        name: []
        for name in (
            "history",
            "run",
            "injection",
            "mechanism",
            "checkpoint",
            "resume",
            "loss",
            "consistency",
            "recovery",
            "hygiene",
        )
    }
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("10", "0", "0")


def test_the_time_of_the_run_is_that_of_the_suite_and_the_cases_share_it(run: GoodRun, tmp_path: Path) -> None:
    analyze(run.write(tmp_path))
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    suite = suite_of(tmp_path)
    assert float(root.get("time", "0")) == float(suite.get("time", "0")) == pytest.approx(26.0)
    assert sum(float(case.get("time", "0")) for case in suite.findall("testcase")) == pytest.approx(26.0)
    assert suite.get("timestamp") == "2026-09-21T14:13:20+00:00"


def test_a_run_whose_harness_was_killed_lasts_to_its_last_record(run: GoodRun, tmp_path: Path) -> None:
    run.drop("run.end")
    analyze(run.write(tmp_path))
    assert float(suite_of(tmp_path).get("time", "0")) == pytest.approx(25.9)


def test_a_run_without_a_begin_has_no_time(run: GoodRun, tmp_path: Path) -> None:
    run.drop("run.start")
    analyze(run.write(tmp_path))
    assert (suite_of(tmp_path).get("time"), suite_of(tmp_path).get("timestamp")) == ("0.0", None)


def test_phases_are_properties(run: GoodRun, tmp_path: Path) -> None:
    analyze(run.write(tmp_path))
    found = {element.get("name"): element.get("value") for element in suite_of(tmp_path).iter("property")}
    assert found["verdict"] == "pass"
    assert found["recovery.mechanism"] == "TTP"
    assert found["recovery.detection"] == "0.600000"
    assert found["recovery.total"] == "11.830000"


def test_a_failure_tells_expected_seen_and_where(run: GoodRun, tmp_path: Path) -> None:
    del run.saved[1]
    analyze(run.write(tmp_path))
    suite = suite_of(tmp_path)
    failure = suite.find("testcase[@name='checkpoint']/failure")
    assert failure is not None
    assert failure.text is not None
    assert "seen:     no checkpoint of replica group [1, 3]" in failure.text
    assert "where:    scenario.yaml:23" in failure.text
    assert outcomes(suite)["checkpoint"] == ["failure"]


def test_unknown_is_an_error_and_no_failure(run: GoodRun, tmp_path: Path) -> None:
    run.drop("hygiene")
    analyze(run.write(tmp_path))
    suite = suite_of(tmp_path)
    assert outcomes(suite)["hygiene"] == ["error"]
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")


def test_what_the_plan_leaves_out_is_skipped(run: GoodRun, tmp_path: Path) -> None:
    run.without_resume()
    run.replan(mechanism="none", checkpoint=None)
    analyze(run.write(tmp_path))
    assert outcomes(suite_of(tmp_path))["recovery"] == ["skipped"]


def test_text_that_xml_cannot_hold_does_not_break_it(run: GoodRun, tmp_path: Path) -> None:
    run.only("run.end")["error"] = "broken \x00\x1b[31m\ud800 <&>"
    result = analyze(run.write(tmp_path))
    assert JUnitXml.fromfile(str(tmp_path / "junit.xml")) is not None
    message = suite_of(tmp_path).find("testcase[@name='run']/error")
    assert message is not None
    assert "broken \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER} <&>" in str(
        message.get("message")
    )
    assert junit(result).tests == 10


def test_the_headline_is_a_property_and_begins_the_message_of_its_check(run: GoodRun, tmp_path: Path) -> None:
    del run.saved[1]
    result = analyze(run.write(tmp_path))
    assert result.headline is not None
    suite = suite_of(tmp_path)
    found = {element.get("name"): element.get("value") for element in suite.iter("property")}
    assert (found["headline"], found["headline.id"]) == (result.headline.text, result.headline.id)
    failure = suite.find("testcase[@name='checkpoint']/failure")
    assert failure is not None and failure.get("message") == result.headline.text
    assert str(failure.text).splitlines()[0] == result.headline.text
