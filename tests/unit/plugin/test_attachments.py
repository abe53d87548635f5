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


def test_allure_gets_the_files_where_it_takes_part(
    project: Project, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in of its module shows the calls; the next test has the real one."""
    (project.pytester.path / "allure.py").write_text(STAND_IN)
    (project.pytester.path / "listening.py").write_text(LISTENER)
    monkeypatch.setenv("PYTHONPATH", f"{project.pytester.path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    project.answer("fail", 1, directory=str(run))
    project.run_apart("-p", "listening", "-p", "no:allure_pytest").assert_outcomes(failed=1)
    attached = json.loads((project.pytester.path / "attached.json").read_text())
    assert attached[0] == [str(run / "report.html"), "run-1: report.html", "html"]
    assert [kind for _, _, kind in attached] == ["html", "text", "text"]


def test_allure_tells_unknown_as_broken_and_fail_as_failed(project: Project, run: Path) -> None:
    pytest.importorskip("allure_pytest", reason="allure-pytest is not installed here")
    for verdict, status, told in (("pass", 0, "passed"), ("fail", 1, "failed"), ("unknown", 2, "broken")):
        project.answer(verdict, status, directory=str(run))
        project.run_apart("--alluredir", f"allure-{verdict}")
        (path,) = (project.pytester.path / f"allure-{verdict}").glob("*-result.json")
        recorded = json.loads(path.read_text())
        assert (recorded["status"], recorded["attachments"][0]["name"]) == (told, "run-1: report.html")


def test_pytest_html_links_the_page_and_shows_the_logs(project: Project, run: Path) -> None:
    pytest.importorskip("pytest_html", reason="pytest-html is not installed here")
    project.answer("unknown", 2, directory=str(run))
    project.run_apart("--html", "tests.html").assert_outcomes(errors=1)
    page = (project.pytester.path / "tests.html").read_text()
    assert (run / "report.html").as_uri() in page
    assert "run-1: logs/train/worker_0.log" in page
