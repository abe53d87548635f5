"""The page of a run and its logs are in the reports of Allure and of pytest-html, where these take part."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chaos.pytest_plugin.attachments import MOST_BYTES, MOST_LOGS, attachments
from tests.unit.plugin.project import Project

pytestmark = pytest.mark.processes

STAND_IN = """\
import json, pathlib
import pytest

attached = []

class attachment_type:
    HTML, TEXT = "html", "text"

class attach:
    @staticmethod
    def file(source, name, attachment_type):
        attached.append([source, name, attachment_type])
        pathlib.Path("attached.json").write_text(json.dumps(attached))
"""

LISTENER = """\
class Listener:
    def pytest_configure(self, config): ...

def pytest_configure(config):
    config.pluginmanager.register(Listener(), "allure_listener")
"""


HTML_PLUGIN = """\
import json, pathlib, sys
import pytest

class extras:
    @staticmethod
    def url(content, name="URL"):
        return {"format_type": "url", "content": content, "name": name}

    @staticmethod
    def text(content, name="Text"):
        return {"format_type": "text", "content": content, "name": name}

sys.modules["pytest_html.extras"] = extras if INSTALLED else None
kept = []

def pytest_addoption(parser):
    parser.addoption("--html", dest="htmlpath", default=None)

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        outcome.get_result().extras = ["of another plugin"]

def pytest_runtest_logreport(report):
    kept.append([report.when, report.outcome, getattr(report, "extras", [])])
    pathlib.Path("kept.json").write_text(json.dumps(kept))
"""
"""As pytest-html 4 does it: files are taken from ``report.extras`` when the report of a phase is logged."""

ALLURE_STATUS = """\
import pathlib
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    yield
    if call.when == "call":
        exception = call.excinfo.value if call.excinfo else None
        failed = isinstance(exception, (AssertionError, pytest.fail.Exception))
        status = "passed" if exception is None else "failed" if failed else "broken"
        pathlib.Path("status").write_text(status)
"""
"""As allure-pytest does it: the type of the exception decides."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The directory of a run with a page and logs."""
    run = tmp_path / "run-1"
    (run / "logs" / "train").mkdir(parents=True)
    (run / "report.html").write_text("<p>a run</p>")
    for name in ("worker_0.log", "worker_1.log"):
        (run / "logs" / "train" / name).write_text(f"ValueError in {name}\n")
    return run


def result(run: Path, verdict: str, **more: Any) -> dict[str, Any]:
    return {"run": run.name, "directory": str(run), "verdict": verdict, **more}


def names(run: Path, verdict: str, **more: Any) -> list[str]:
    return [file.name for file in attachments([result(run, verdict, **more)])]


def test_the_page_is_attached_always_and_logs_where_a_run_does_not_pass(run: Path) -> None:
    assert names(run, "pass") == ["run-1: report.html"]
    logs = ["run-1: logs/train/worker_0.log", "run-1: logs/train/worker_1.log"]
    assert names(run, "unknown") == ["run-1: report.html", *logs]
    assert names(run, "fail", first_errors=[{"file": "logs/train/worker_1.log"}])[1:] == logs[::-1]


def test_nothing_beyond_the_run_is_attached_and_no_log_of_any_size(run: Path) -> None:
    (run.parent / "secret.log").write_text("a secret\n")
    (run / "logs" / "train" / "worker_0.log").unlink()
    (run / "logs" / "train" / "worker_0.log").symlink_to(run.parent / "secret.log")
    with (run / "logs" / "train" / "worker_1.log").open("wb") as log:
        log.truncate(MOST_BYTES + 1)
    errors = [{"file": "../secret.log"}, {"file": "logs/../../secret.log"}]
    assert names(run, "fail", first_errors=errors) == ["run-1: report.html"]
    for number in range(20):
        (run / "logs" / "train" / f"worker_1{number}.log").write_text("x\n")
    assert len(names(run, "fail")) == 1 + MOST_LOGS


def test_a_run_without_files_attaches_none(tmp_path: Path) -> None:
    assert names(tmp_path / "run-1", "fail") == []


def stand_in(project: Project, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> None:
    """Put modules in place of those of another plugin."""
    for name, text in files.items():
        (project.pytester.path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{project.pytester.path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def test_allure_gets_the_files_where_it_takes_part(
    project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in of its module shows the calls; the next test has the real one."""
    stand_in(project, monkeypatch, {"allure.py": STAND_IN, "listening.py": LISTENER})
    project.answer("fail", 1, directory=str(run))
    project.run_apart("-p", "listening", "-p", "no:allure_pytest").assert_outcomes(failed=1)
    attached = json.loads((project.pytester.path / "attached.json").read_text())
    assert attached[0] == [str(run / "report.html"), "run-1: report.html", "html"]
    assert [kind for _, _, kind in attached] == ["html", "text", "text"]


@pytest.mark.parametrize(
    ("verdict", "status", "kind"), [("pass", 0, "passed"), ("fail", 1, "failed"), ("unknown", 2, "broken")]
)
def test_by_the_type_of_its_exception_unknown_is_broken_and_fail_is_failed(
    project: Project, run: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, status: int, kind: str
) -> None:
    """A stand-in of Allure's rule shows it; the next test has the real one."""
    stand_in(project, monkeypatch, {"status.py": ALLURE_STATUS})
    project.answer(verdict, status, directory=str(run))
    project.run_apart("-p", "status", "-p", "no:allure_pytest")
    assert (project.pytester.path / "status").read_text() == kind


def test_allure_tells_unknown_as_broken_and_fail_as_failed(project: Project, run: Path) -> None:
    pytest.importorskip("allure_pytest", reason="allure-pytest is not installed here")
    for verdict, status, told in (("pass", 0, "passed"), ("fail", 1, "failed"), ("unknown", 2, "broken")):
        project.answer(verdict, status, directory=str(run))
        project.run_apart("--alluredir", f"allure-{verdict}")
        (path,) = (project.pytester.path / f"allure-{verdict}").glob("*-result.json")
        recorded = json.loads(path.read_text())
        assert (recorded["status"], recorded["attachments"][0]["name"]) == (told, "run-1: report.html")


def html(project: Project, monkeypatch: pytest.MonkeyPatch, *, installed: bool = True) -> list[str]:
    """Put a stand-in in place of pytest-html; return the arguments that load it."""
    stand_in(project, monkeypatch, {"row.py": HTML_PLUGIN.replace("INSTALLED", str(installed))})
    return ["-p", "row", "-p", "no:html"]


def kept_extras(project: Project, when: str) -> list[Any]:
    """What the stand-in of pytest-html has got for a phase."""
    kept = json.loads((project.pytester.path / "kept.json").read_text())
    return [extra for phase, _, extras in kept if phase == when for extra in extras]


def test_the_row_of_pytest_html_gets_the_page_as_a_link_and_the_logs_as_texts(
    project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in of its module shows the calls; the last test has the real one."""
    (run / "logs" / "train" / "worker_1.log").write_bytes(b"half \xff\n")
    project.answer("unknown", 2, directory=str(run))
    arguments = html(project, monkeypatch)
    project.run_apart(*arguments, "--html", "tests.html")
    logs = {"worker_0.log": "ValueError in worker_0.log\n", "worker_1.log": "half \ufffd\n"}
    assert kept_extras(project, "call") == [
        "of another plugin",
        {"format_type": "url", "content": (run / "report.html").as_uri(), "name": "run-1: report.html"},
        *({"format_type": "text", "content": text, "name": f"run-1: logs/train/{name}"} for name, text in logs.items()),
    ]
    assert kept_extras(project, "setup") == kept_extras(project, "teardown") == []


def test_a_run_that_passes_has_its_page_alone_in_the_row(
    project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.answer("pass", 0, directory=str(run))
    project.run_apart(*html(project, monkeypatch), "--html", "tests.html").assert_outcomes(passed=1)
    (_, page) = kept_extras(project, "call")
    assert page["name"] == "run-1: report.html"


def test_without_its_option_or_without_the_plugin_nothing_is_put_into_a_row(
    project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.answer("pass", 0, directory=str(run))
    project.run_apart(*html(project, monkeypatch)).assert_outcomes(passed=1)
    assert kept_extras(project, "call") == ["of another plugin"]
    project.run_apart(*html(project, monkeypatch, installed=False), "--html", "tests.html").assert_outcomes(passed=1)
    assert kept_extras(project, "call") == ["of another plugin"]


def test_pytest_html_links_the_page_and_shows_the_logs(project: Project, run: Path) -> None:
    pytest.importorskip("pytest_html", reason="pytest-html is not installed here")
    project.answer("unknown", 2, directory=str(run))
    project.run_apart("--html", "tests.html").assert_outcomes(errors=1)
    page = (project.pytester.path / "tests.html").read_text()
    assert (run / "report.html").as_uri() in page
    assert "run-1: logs/train/worker_0.log" in page
