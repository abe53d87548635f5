"""In a run: what comes after the job comes also after a failure, and a killed harness leaves no command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.cli.main import entry
from chaos.history.reader import read_history
from chaos.machine.job.processes import find_run_processes
from chaos.report.analyze import analyze

pytestmark = pytest.mark.processes

SCENARIO = """\
chaos: 1
name: mine
cluster: {ranks: 2}
job: {kind: plain, steps: 4}
baseline: none
checks: ["mine:says"]
hooks:
  before: [{command: BEFORE}]
  after: [{command: [touch, after]}]
  notify: [{command: [sh, -c, 'echo "$CHAOS_VERDICT" > verdict']}]
"""
CHECK = """\
import pathlib
from chaos.api.checks import passed

def says(plan, history):
    pathlib.Path(__file__).with_name("executed").touch()
    return passed("the check is asked", "it was")
"""
NOTIFY = "sh -c 'echo \"$CHAOS_VERDICT\" > verdict'"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the scenario, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CHECK)
    return tmp_path


def arguments(place: Path, *before: str) -> list[str]:
    """Write the scenario with this command before the job; return the arguments that run it."""
    (place / "mine.yaml").write_text(SCENARIO.replace("BEFORE", json.dumps(before)))
    allowed = ["--allow-hook", " ".join(before), "--allow-hook", "touch after", "--allow-hook", NOTIFY]
    return ["run", "mine.yaml", "--reports", "reports", "--no-report", "--allow-checks", "mine:says", *allowed]


def test_without_an_allowance_nothing_is_started(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments(place, "false")
    assert entry(["run", "mine.yaml", "--reports", "reports"]) == 64
    assert "--allow-checks mine:says" in capsys.readouterr().err
    assert not (place / "reports").exists() and not (place / "executed").exists()


def test_a_plan_shows_what_a_run_would_execute(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments(place, "echo", "a b")
    assert entry(["plan", "mine.yaml"]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for row in ("own check mine:says", "hook before echo 'a b'", "hook after touch after"):
        assert f"{row}, where it is allowed" in shown
    assert not (place / "executed").exists()


def test_after_a_command_that_fails_the_job_is_not_started_and_the_rest_follows(place: Path) -> None:
    assert entry(arguments(place, "false")) == 2
    run = (place / "reports" / "latest").resolve()
    assert (place / "after").exists() and (place / "verdict").read_text() == "unknown\n"
    history = read_history(run / "history")
    assert history.first("attempt.start") is None
    assert [end.data["status"] for end in history.select("hook.end")] == [1, 0, 0]
    assert (place / "executed").exists()
    (place / "executed").unlink()
    result = analyze(run)
    assert [check.verdict for check in result.checks if check.name == "mine:says"] == ["pass"]
    assert not (place / "executed").exists(), "a run is judged again without its code"


def test_a_killed_harness_leaves_no_command_behind_once_it_is_healed(place: Path) -> None:
    command = [sys.executable, "-m", "chaos", *arguments(place, "sh", "-c", "sleep 600")]
    command[command.index("sh -c sleep 600")] = "sh -c 'sleep 600'"
    harness = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    reports = place / "reports"
    run = wait_for("the run", lambda: next(iter(reports.glob("mine-*")), None), seconds=240)

    def token() -> str | None:
        path = run / "run.json"
        return json.loads(path.read_text())["token"] if path.is_file() else None

    name = wait_for("the identity of the run", token, seconds=60)
    wait_for("the command", lambda: find_run_processes(name) or None, seconds=240)
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert find_run_processes(name), "SIGKILL of the harness alone ends nothing"
    assert entry(["heal", "--reports", "reports"]) == 0
    assert find_run_processes(name) == []
