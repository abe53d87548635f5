"""A soak runs own checks and hooks where its call allows them, and makes no run where something is not allowed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.cli import codes
from chaos.cli.main import entry
from chaos.cli.soak import kill_soak, runs
from chaos.soak.kill_soak import KillRecord

SCENARIO = """\
chaos: 1
name: mine
cluster: {ranks: 2}
job: {kind: plain, steps: 4}
checks: ["mine:says"]
hooks:
  after: [{command: [./tidy, a b]}]
"""
FAKE = """\
import json, sys
with open(r"CALLS", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + chr(10))
print(json.dumps({"verdict": "pass", "cells": [{"verdict": "pass", "run": "run-1", "result": {}}], "runs": []}))
"""
ALLOWED = ["--allow-checks", "mine:says", "--allow-hook", "./tidy 'a b'"]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every run passes at once; what it was called with is a line of this file. The scenario is beside it."""
    path = tmp_path / "calls"
    fake = FAKE.replace("CALLS", str(path))
    for module in (runs, kill_soak):
        monkeypatch.setattr(module, "command_of", lambda _, arguments: [sys.executable, "-c", fake, *arguments])
    (tmp_path / "mine.yaml").write_text(SCENARIO)
    (tmp_path / "mine.py").write_text("def says(plan, history): pass\n")
    (tmp_path / "tidy").write_text("#!/bin/sh\n")
    (tmp_path / "tidy").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return path


def runs_made(calls: Path) -> list[list[str]]:
    made = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
    return [arguments for arguments in made if arguments[0] == "run"]


@pytest.mark.parametrize("more", [[], ["--kill"]])
@pytest.mark.parametrize(
    ("allowed", "missing"),
    [([], "--allow-checks mine:says"), (ALLOWED[:2], "--allow-hook"), (["--allow-hook", "'"], "quote it")],
)
def test_without_an_allowance_no_run_is_made(
    calls: Path, capsys: pytest.CaptureFixture[str], more: list[str], allowed: list[str], missing: str
) -> None:
    assert entry(["soak", "mine.yaml", "--reports", "reports", *allowed, *more]) == codes.USAGE
    assert missing in capsys.readouterr().err
    assert runs_made(calls) == []


def test_every_run_gets_the_allowances(calls: Path) -> None:
    assert entry(["soak", "mine.yaml", "--times", "2", "--reports", "reports", *ALLOWED]) == codes.PASS
    first, second = runs_made(calls)
    assert first == second
    at = first.index("--allow-checks")
    assert first[at : at + 4] == ALLOWED


@pytest.mark.processes
def test_every_run_of_a_soak_of_kills_gets_them(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(_: kill_soak.KillSoak, process: subprocess.Popen[bytes], *__: object) -> bool:
        process.wait()
        return True

    monkeypatch.setattr(kill_soak.KillSoak, "_kill", killed)
    monkeypatch.setattr(kill_soak, "leftovers", lambda *_: [])
    arguments = ["soak", "mine.yaml", "--kill", "--times", "1", "--seed", "1", "--reports", "reports"]
    assert entry([*arguments, *ALLOWED]) == codes.PASS
    assert len(KillRecord(Path("reports/kills.jsonl")).kills()) == 1
    made = [" ".join(arguments) for arguments in runs_made(calls)]
    assert len(made) == 2 and all(" ".join(ALLOWED) in arguments for arguments in made)


@pytest.mark.parametrize("name", ["mine.py", "tidy"])
def test_runs_with_another_text_of_the_own_code_do_not_count(calls: Path, name: str) -> None:
    arguments = ["soak", "mine.yaml", "--times", "1", "--reports", "reports", *ALLOWED]
    for made in (1, 1, 2):
        if made == 2:
            with Path(name).open("a") as file:
                file.write("# another text\n")
        assert entry(arguments) == codes.PASS
        assert len(runs_made(calls)) == made


@pytest.mark.parametrize("option", [ALLOWED[:2], ALLOWED[2:]])
def test_drawn_scenarios_have_no_own_code_to_allow(
    calls: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert entry(["soak", "--random", "1", "--reports", "reports", *option]) == codes.USAGE
    assert "--allow-checks" in capsys.readouterr().err
