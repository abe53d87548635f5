"""What is collected, and how each end of a run is shown."""

from __future__ import annotations

import os
import shlex
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.pytest_plugin.description import describe
from chaos.pytest_plugin.ids import item_name
from chaos.pytest_plugin.scenario_item import ScenarioItem
from chaos.scenario.names import KnownNames
from tests.kit.spread import at_night, daily
from tests.unit.plugin.project import CHECK, EMPTY, Project

pytestmark = pytest.mark.processes

AXIS = '"${victim}"'
MATRIX = "tags: [slow-one, ttp]\nmatrix: {victim: [1, 2]}"


def test_every_cell_is_an_item_and_other_yaml_files_are_none(project: Project) -> None:
    project.scenario(head=MATRIX, victim=AXIS)
    (project.pytester.path / "scenarios" / "values.yaml").write_text("replicas: 3\n")
    result = project.run("--collect-only", "-q")
    items = [line for line in result.outlines if "::" in line]
    assert items == ["scenarios/kill-rank.yaml::kill-rank:victim=1", "scenarios/kill-rank.yaml::kill-rank:victim=2"]


def test_ids_need_no_quotes_in_a_shell_and_are_unique(project: Project) -> None:
    cells = ['a="high level"', "a=[1, 2]", "a=b/c;$(d)", "a=::", "target=#2"]
    names = [item_name("kill-rank", [cell]) for cell in cells]
    assert names == [f"kill-rank:{cell}" for cell in ("a=high-level", "a=1,2", "a=b/c-d-", "a=:", "target=%2")]
    assert [shlex.quote(name) for name in names] == names
    project.scenario(
        head="matrix: {victim: [1], value: [high level, high-level]}\ndescription: with ${value}", victim=AXIS
    )
    result = project.run("--collect-only", "-q")
    items = [line.partition("::")[2] for line in result.outlines if "::" in line]
    assert items == ["kill-rank:victim=1,value=high-level", "kill-rank:victim=1,value=high-level.2"]


def test_ids_of_earlier_versions_still_select(project: Project) -> None:
    project.scenario(head="matrix: {victim: [1, 2], value: [high level]}\ndescription: with ${value}", victim=AXIS)
    earlier = 'kill-rank[victim=2,value="high level"]'
    (item,) = project.pytester.inline_genitems(f"scenarios/kill-rank.yaml::{earlier}", "--noconftest")[0]
    assert item.name == "kill-rank:victim=2,value=high-level"
    assert earlier in item.extra_keyword_matches
    project.answer("pass", 0)
    project.run("-k", "kill-rank[victim and victim-2").assert_outcomes(passed=1, deselected=1)
    assert len(project.pytester.inline_genitems("scenarios/kill-rank.yaml::kill-rank", "--noconftest")[0]) == 2


def test_runs_breed_no_tests(project: Project) -> None:
    project.scenario()
    run = project.pytester.path / "reports" / "kill-rank-1"
    run.mkdir(parents=True)
    (run / "run.json").write_text('{"run": "kill-rank-1", "created": "now"}')
    (run / "test_of_the_job.py").write_text("def test_it(): ...\n")
    (run / "scenario.yaml").write_text((project.pytester.path / "scenarios" / "kill-rank.yaml").read_text())
    result = project.run("--collect-only", "-q", ".")
    assert [line for line in result.outlines if "::" in line] == ["scenarios/kill-rank.yaml::kill-rank"]


def test_a_pass_passes_and_the_command_names_cell_and_reports(project: Project) -> None:
    project.scenario(head=MATRIX, victim=AXIS)
    project.answer("pass", 0)
    result = project.run("--chaos-reports", "elsewhere")
    result.assert_outcomes(passed=2)
    root = project.pytester.path
    (first, second) = project.calls()
    assert first[:2] == ["run", str(root / "scenarios" / "kill-rank.yaml")]
    assert first[first.index("--reports") + 1] == str(root / "elsewhere")
    assert (first[-1], second[-1]) == ("victim=1", "victim=2")
    assert "--json" in first


@pytest.mark.parametrize("workers", daily([1, 2], 2))
def test_workers_of_xdist_share_the_cores(project: Project, workers: int) -> None:
    project.answer("pass", 0)
    project.run_apart("-n", str(workers)).assert_outcomes(passed=1)
    (call,) = project.calls()
    share = max(1, len(os.sched_getaffinity(0)) // workers)
    assert call[call.index("--cores") :][:2] == ["--cores", str(share)] if workers > 1 else "--cores" not in call


def test_tags_are_markers_and_names_can_be_selected(project: Project) -> None:
    project.scenario(head=MATRIX, victim=AXIS)
    project.scenario("plain")
    project.answer("pass", 0)
    project.run("-m", "slow-one").assert_outcomes(passed=2, deselected=1)
    project.run("-k", "victim-2 or plain").assert_outcomes(passed=2, deselected=1)


def test_a_fail_shows_expectation_line_and_evidence_but_no_traceback(project: Project) -> None:
    project.answer("fail", 1)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "checkpoint: step 4, not 5",
            "*expected  the checkpoint holds step 5",
            "*seen      it holds step 4",
            "*where     scenarios/kill-rank.yaml:7, job/checkpoints/ttp_rank_0-1_5.ckpt",
            "kill-rank: fail: checkpoint",
            "see /r/run-1",
            "FAILED scenarios/kill-rank.yaml::kill-rank*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*pytest_plugin*")


@pytest.mark.parametrize(
    ("verdict", "status", "errors", "shown"),
    [
        ("unknown", 2, "", "*checkpoint: step 4, not 5*"),
        (None, 3, "ValueError: broken harness\n", "*the harness failed*"),
        (None, 64, "kill-rank.yaml:3:1: rank 9 of 4\n", "*rank 9 of 4*"),
        (None, 0, "", "*ended with status 0 and no result*"),
        at_night(None, 7, "", "*ended with status 7 and no result*"),
    ],
)
def test_whatever_is_no_verdict_is_an_error_and_not_a_failure(
    project: Project, verdict: str | None, status: int, errors: str, shown: str
) -> None:
    project.answer(verdict, status, errors=errors)
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([shown])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_what_the_machine_lacks_is_the_reason_of_a_skip(project: Project) -> None:
    project.machine_lacks(["mindspore: not installed; install it"])
    result = project.run("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*this machine lacks mindspore: not installed; install it*"])
    assert not project.calls_file.exists()


@pytest.mark.parametrize(
    ("verdict", "status", "outcome"), [("fail", 1, "xfailed"), ("pass", 0, "failed"), ("unknown", 2, "errors")]
)
def test_a_finding_is_a_strict_expected_failure(project: Project, verdict: str, status: int, outcome: str) -> None:
    project.scenario(head="finding: F-01\nfailing: [checkpoint, loss]")
    project.answer(verdict, status)
    result = project.run("-rx")
    result.assert_outcomes(**{outcome: 1})
    if outcome == "xfailed":
        result.stdout.fnmatch_lines(["XFAIL*F-01*"])
    elif outcome == "failed":
        result.stdout.fnmatch_lines(["*XPASS(strict)*F-01*"])


@pytest.mark.parametrize(
    ("sdk", "verdict", "outcome"),
    [
        ("vendor", "fail", "xfailed"),
        ("vendor", "pass", "failed"),
        at_night("vendor", "unknown", "errors"),
        ("standin", "fail", "failed"),
        at_night("standin", "pass", "passed"),
        at_night("standin", "unknown", "errors"),
    ],
)
def test_a_finding_of_one_sdk_is_strict_with_it_and_nothing_with_the_other(
    project: Project, sdk: str, verdict: str, outcome: str
) -> None:
    project.scenario(head="finding: {id: F-10, sdk: vendor}\nfailing: [checkpoint]")
    project.answer(verdict, {"pass": 0, "fail": 1, "unknown": 2}[verdict], sdk=sdk)
    result = project.run("-rx")
    result.assert_outcomes(**{outcome: 1})
    if outcome == "xfailed":
        result.stdout.fnmatch_lines(["XFAIL*F-10: known defect, fails in checkpoint with the SDK vendor*"])
    elif (sdk, verdict) == ("vendor", "pass"):
        result.stdout.fnmatch_lines(["*XPASS(strict)*F-10*"])
    else:
        result.stdout.no_fnmatch_line("*F-10*")


@pytest.mark.parametrize(
    ("failing", "verdict", "outcome"),
    [("checkpoint", "fail", "xfailed"), ("checkpoint", "pass", "xpassed"), ("loss", "fail", "failed")],
)
def test_a_run_that_passes_is_no_failure_of_a_finding_that_shows_now_and_then(
    project: Project, failing: str, verdict: str, outcome: str
) -> None:
    project.scenario(head=f"finding: {{id: F-11, always: false}}\nfailing: [{failing}]")
    project.answer(verdict, 1 if verdict == "fail" else 0)
    project.run().assert_outcomes(**{outcome: 1})


SIGNED = {**CHECK, "name": "hygiene", "verdict": "fail", "data": {"finding": "F-15"}}


@pytest.mark.parametrize("head", ["", "finding: F-01\nfailing: [loss]"])
def test_a_fail_by_a_signature_is_an_expected_failure_in_any_scenario(project: Project, head: str) -> None:
    project.scenario(head=head)
    project.answer("fail", 1, checks=[SIGNED], statement="pass")
    result = project.run("-rx")
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL *kill-rank*F-15: known defect, recognised by its signature*"])


@pytest.mark.parametrize("beside", ["fail", "unknown"])
def test_a_signature_excuses_nothing_beside_it(project: Project, beside: str) -> None:
    project.scenario()
    project.answer("fail", 1, checks=[SIGNED], statement=beside)
    project.run().assert_outcomes(failed=1)


@pytest.mark.parametrize(("sdk", "outcome"), [("vendor", "xfailed"), ("standin", "failed")])
def test_a_check_that_fails_with_the_vendors_sdk_alone_is_no_excuse_with_the_stand_in(
    project: Project, sdk: str, outcome: str
) -> None:
    project.scenario(head="finding: {id: F-06, with_vendor: [checkpoint]}\nfailing: [loss]")
    project.answer("fail", 1, sdk=sdk)
    project.run().assert_outcomes(**{outcome: 1})


def test_a_fail_in_another_check_than_the_findings_is_a_plain_failure(project: Project) -> None:
    project.scenario(head="finding: F-01\nfailing: [loss]")
    project.answer("fail", 1)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*F-01 fails in loss; this failed in checkpoint too*", "*expected  the checkpoint holds step 5"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_comparison_that_fails_is_not_the_finding_of_a_check(project: Project) -> None:
    project.scenario(head=f"{PAIR}\nfinding: F-01\nfailing: [checkpoint]", victim=AXIS)
    project.answer("fail", 1, cells=2, more=compared("fail"))
    project.run().assert_outcomes(failed=1)
    project.scenario(head=f"{PAIR}\nfinding: F-01\nfailing: [checkpoint, comparison]", victim=AXIS)
    project.run().assert_outcomes(xfailed=1)


def test_a_broken_scenario_is_a_collection_error_with_its_place(project: Project) -> None:
    project.scenario("broken", head="colour: red")
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*broken.yaml:3:1: *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*load.py*")


def test_a_setting_reaches_the_scenarios_that_have_the_variable(project: Project) -> None:
    project.scenario(head="variables: {victim: 1}", victim=AXIS)
    project.scenario("plain")
    project.answer("pass", 0)
    project.run("--chaos-set", "victim=2").assert_outcomes(passed=2)
    assert [call[-2:] for call in project.calls() if "--set" in call] == [["--set", "victim=2"]]


def test_the_platform_reaches_every_run(project: Project) -> None:
    project.scenario()
    project.answer("pass", 0)
    project.run("--chaos-platform", "docker").assert_outcomes(passed=1)
    (call,) = project.calls()
    assert call[call.index("--platform") + 1] == "docker"


@pytest.mark.parametrize(("options", "sdk"), [((), "auto"), (("--chaos-sdk", "vendor"), "vendor")])
def test_the_sdk_reaches_every_run(project: Project, options: tuple[str, ...], sdk: str) -> None:
    project.scenario()
    project.answer("pass", 0)
    project.run(*options).assert_outcomes(passed=1)
    (call,) = project.calls()
    assert call[call.index("--sdk") + 1] == sdk


def test_an_sdk_that_there_is_not_is_a_usage_error(project: Project) -> None:
    assert project.run("--chaos-sdk", "vendors").ret == pytest.ExitCode.USAGE_ERROR


def test_the_inventory_reaches_every_run_with_its_platform(project: Project, tmp_path: Path) -> None:
    host = "{name: first, address: 10.0.0.5}"
    (tmp_path / "hosts.yaml").write_text(f"inventory: 1\nhosts: [{host}]\n", "utf-8")
    project.scenario()
    project.answer("pass", 0)
    project.run("--chaos-platform", "ssh", "--chaos-inventory", str(tmp_path / "hosts.yaml")).assert_outcomes(passed=1)
    (call,) = project.calls()
    assert call[call.index("--platform") + 1] == "ssh"
    assert call[call.index("--inventory") + 1] == str(tmp_path / "hosts.yaml")


def test_an_inventory_without_its_platform_is_a_usage_error_and_one_that_is_not_there_is_told(project: Project) -> None:
    project.scenario()
    result = project.run("--chaos-inventory", "hosts.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--chaos-inventory: is for --chaos-platform ssh*"])
    result = project.run("--chaos-platform", "ssh", "--chaos-inventory", "nowhere.yaml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*nowhere.yaml*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_setting_that_no_scenario_has_is_a_usage_error(project: Project) -> None:
    result = project.run("--chaos-set", "victm=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no collected scenario has a variable victm*"])


def test_a_setting_without_a_value_is_a_usage_error(project: Project) -> None:
    result = project.run("--chaos-set", "victim")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_junit_holds_the_phases_and_tells_failures_from_errors(project: Project) -> None:
    project.scenario(head="matrix: {victim: [1, 2, 3]}", victim=AXIS)
    project.answer("pass", 0, cell="victim=1")
    project.answer("fail", 1, cell="victim=2")
    project.answer("unknown", 2, cell="victim=3")
    project.run("--junitxml=junit.xml").assert_outcomes(passed=1, failed=1, errors=1)
    cases = ET.parse(project.pytester.path / "junit.xml").getroot().findall(".//testcase")
    assert [[child.tag for child in case if child.tag != "properties"] for case in cases] == [
        [],
        ["failure"],
        ["error"],
    ]
    for case, verdict in zip(cases, ["pass", "fail", "unknown"], strict=True):
        found = {element.get("name"): element.get("value") for element in case.findall("properties/property")}
        headline = {"headline": "checkpoint: step 4, not 5", "headline.id": "checkpoint-1"}
        assert found == {
            "file": "scenarios/kill-rank.yaml",
            "line": "2" if verdict == "pass" else "7",
            "run": "run-1",
            "verdict": verdict,
            **({} if verdict == "pass" else headline),
            "recovery.mechanism": "TTP",
            "recovery.detection": "0.512",
            "recovery.total": "9.5",
        }
    assert "seen      it holds step 4" in (cases[1].findtext("failure") or "")
    messages = [case[-1].get("message") for case in cases[1:]]
    assert messages == ["checkpoint: step 4, not 5", "checkpoint: step 4, not 5"]


def test_the_time_of_a_run_is_that_of_the_tests_call(project: Project) -> None:
    project.answer("pass", 0)
    project.run("--durations=0", "-vv").stdout.re_match_lines([r".*s call +scenarios/kill-rank\.yaml::kill-rank$"])


def test_a_message_is_the_headline_and_its_text_has_ten_lines(project: Project) -> None:
    project.answer(None, 3, errors="".join(f"line {number}\n" for number in range(100)))
    project.run("--junitxml=junit.xml").assert_outcomes(errors=1)
    (error,) = ET.parse(project.pytester.path / "junit.xml").getroot().findall(".//testcase/error")
    assert error.get("message") == "kill-rank: the harness failed"
    lines = (error.text or "").splitlines()
    assert (len(lines), lines[-2:]) == (10, ["… 92 lines more", "line 99"])


@pytest.mark.nightly
def test_two_workers_give_the_same_outcomes(project: Project) -> None:
    project.scenario(head="matrix: {victim: [1, 2, 3]}", victim=AXIS)
    project.answer("pass", 0, cell="victim=1")
    project.answer("fail", 1, cell="victim=2")
    project.answer("unknown", 2, cell="victim=3")
    result = project.run_apart("-n", "2")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*expected  the checkpoint holds step 5"])


def test_an_interrupt_of_pytest_alone_reaches_the_run_and_is_waited_for(project: Project) -> None:
    project.answer(None, 130, hang=True)
    result = project.run_apart()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert (project.pytester.path / "interrupted").exists()


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_run_ends_in_order_when_pytest_or_its_worker_is_killed(project: Project, workers: tuple[str, ...]) -> None:
    project.answer(None, 130, kill=True)
    assert project.run_apart(*workers).ret != pytest.ExitCode.OK
    ended = project.pytester.path / "ended"
    wait_for("the end of the run", lambda: ended.exists() or None, seconds=60)


def test_without_a_setting_the_command_is_this_python(
    project: Project, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.run.prepare.prepare.known_names", KnownNames)
    (pytester.path / "conftest.py").unlink()
    pytester.makeini("[pytest]\n")
    (item,) = pytester.inline_genitems("scenarios")[0]
    assert isinstance(item, ScenarioItem)
    assert item.command()[:5] == [sys.executable, "-m", "chaos.cli.with_parent", str(os.getpid()), "run"]


PAIR = "matrix: {victim: [1, 2]}\ncompare: {axis: victim, at_most: {load: 0.5}}"
COMPARED = {
    "measure": "load",
    "expected": "load in the second run is at most 0.5 of its value in the first",
    "seen": "6 s without, 5 s with",
}


def compared(verdict: str) -> dict[str, Any]:
    return {"comparisons": [{"verdict": verdict, "statements": [{**COMPARED, "verdict": verdict}]}]}


def test_two_cells_that_are_compared_are_one_item(project: Project) -> None:
    project.scenario(head=PAIR, victim=AXIS)
    project.answer("pass", 0, cells=2, more=compared("pass"))
    project.run("--junitxml=junit.xml").assert_outcomes(passed=1)
    names = {element.get("name") for element in ET.parse(project.pytester.path / "junit.xml").iter("property")}
    assert {"recovery.detection[victim=1]", "recovery.detection[victim=2]"} <= names
    (call,) = project.calls()
    assert [call[index + 1] for index, word in enumerate(call) if word == "--cell"] == ["victim=1", "victim=2"]
    items = [line for line in project.run("--collect-only", "-q").outlines if "::" in line]
    assert items == ["scenarios/kill-rank.yaml::kill-rank:victim=1+victim=2"]


def test_a_comparison_that_fails_fails_the_item_and_is_shown(project: Project) -> None:
    project.scenario(head=PAIR, victim=AXIS)
    project.answer("pass", 1, cells=2, more=compared("fail"))
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*compared, fail", "*load (fail)", "*seen      6 s without, 5 s with"])


def test_a_comparison_that_was_not_made_is_an_error(project: Project) -> None:
    project.scenario(head=PAIR, victim=AXIS)
    project.answer("pass", 0, cells=2, more={})
    project.run().assert_outcomes(errors=1)


def test_an_unknown_comparison_is_an_error(project: Project) -> None:
    project.scenario(head=PAIR, victim=AXIS)
    project.answer("pass", 2, cells=2, more=compared("unknown"))
    project.run().assert_outcomes(errors=1)


def described(checks: Sequence[dict[str, Any]], **more: Any) -> list[str]:
    result = {**EMPTY, "verdict": "fail", "checks": checks, "directory": "/r", **more}
    return describe(result, scenario="scenarios/s.yaml")


def test_a_description_begins_with_what_broke_first() -> None:
    checks = [
        {"name": "checkpoint", "verdict": "fail", "expected": "a", "seen": "b", "where": [], "order": 1},
        {"name": "resume", "verdict": "fail", "expected": "c", "seen": "d", "where": ["scenario.yaml:7"], "order": 0},
    ]
    assert described(checks, reason="resume: d (expected: c); then checkpoint") == [
        "resume: d (expected: c); then checkpoint",
        "  expected  c",
        "  seen      d",
        "  where     scenarios/s.yaml:7",
        "1 statement follows from this (chaos analyze /r --all)",
        "kill-rank: fail: resume; then checkpoint",
        "see /r",
    ]


def test_a_description_of_any_length_has_at_most_ten_lines() -> None:
    check = {"verdict": "fail", "expected": "a", "where": [f"history/{number}" for number in range(20)]}
    checks = [
        {**check, "name": name, "seen": "x" * (50 * letter + 1) + chr(97 + letter), "order": letter}
        for letter, name in enumerate(["injection"] * 9 + ["loss"] * 9)
    ]
    error = {"attempt": "train", "rank": 2, "file": "logs/train/worker_2.log", "line": 7, "text": "ValueError: no"}
    lines = described(checks, first_errors=[error] * 8)
    assert len(lines) <= 10
    assert "  log       rank 2, logs/train/worker_2.log:7: ValueError: no" in lines
