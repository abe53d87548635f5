"""The fixture ``chaos`` runs scenarios in a test of the user's own, with the options of the plugin."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.unit.plugin.project import Project

pytestmark = pytest.mark.processes

TESTS = """\
def test_mine(chaos):
    run = chaos.run("kill-rank", set={settings})
    assert run.verdict == "pass"
    assert run.recovery.total < 60
"""


def run_test(project: Project, *options: str, settings: str = "{}") -> pytest.RunResult:
    (project.pytester.path / "test_mine.py").write_text(TESTS.replace("{settings}", settings))
    return project.pytester.runpytest_inprocess("test_mine.py", "--noconftest", "-p", "no:cacheprovider", *options)


def test_a_test_of_the_users_own_judges_a_run(project: Project) -> None:
    project.answer("pass", 0)
    run_test(project, "--chaos-reports", "elsewhere", "--junitxml=junit.xml").assert_outcomes(passed=1)
    (call,) = project.calls()
    assert call[call.index("--reports") + 1] == str(project.pytester.path / "elsewhere")
    names = {element.get("name") for element in ET.parse(project.pytester.path / "junit.xml").iter("property")}
    assert {"run", "verdict", "recovery.total"} <= names


def test_a_failing_run_says_why_in_the_report_of_the_test(project: Project) -> None:
    project.answer("fail", 1)
    result = run_test(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*'fail' == 'pass'*", "*Captured chaos call*", "checkpoint: step 4, not 5"])


def test_what_the_machine_lacks_skips_the_test_and_a_wrong_name_is_told(project: Project) -> None:
    result = run_test(project, settings="{'victm': 1}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*UnknownParameter: kill-rank.yaml has no variable and no axis 'victm'*"])
    project.machine_lacks(["mindspore: not installed; install it"])
    run_test(project).assert_outcomes(skipped=1)
    assert not project.calls_file.exists()
