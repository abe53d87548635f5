"""A soak runs with the SDK that is asked for, and runs with another one do not count."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from chaos.cli import codes
from chaos.cli.main import entry
from chaos.cli.soak import runs
from chaos.soak.soak import SoakRecord
from tests.unit.cli.kit import SCENARIO

FAKE = """\
import json, pathlib, sys
with open(r"CALLS", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + chr(10))
print(json.dumps({"verdict": "pass", "cells": [{"verdict": "pass", "run": "run-1", "result": {}}]}))
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every run passes at once; what it was called with is a line of this file. The vendor's package is there."""
    path = tmp_path / "calls"
    fake = FAKE.replace("CALLS", str(path))
    monkeypatch.setattr(runs, "command_of", lambda _, arguments: [sys.executable, "-c", fake, *arguments])
    monkeypatch.setattr("chaos.run.prepare.versions.has_module", lambda name: True)
    (tmp_path / "kill-rank.yaml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return path


def sdks(calls: Path) -> list[str]:
    return [call[call.index("--sdk") + 1] for call in map(json.loads, calls.read_text().splitlines())]


def test_runs_are_those_of_the_sdk_that_is_asked_for(calls: Path) -> None:
    for sdk, made in (("standin", 2), ("vendor", 4), ("standin", 4), ("auto", 4)):
        arguments = ["soak", "kill-rank.yaml", "--times", "2", "--sdk", sdk, "--reports", "reports"]
        assert entry(arguments) == codes.PASS
        assert len(sdks(calls)) == made, f"what was run with {sdk} counts for it, and for nothing else"
    assert sdks(calls) == ["standin", "standin", "vendor", "vendor"]
    assert len({run.code for run in SoakRecord(Path("reports/soak.jsonl")).runs()}) == 2


@pytest.mark.parametrize("more", [[], ["--kill"]])
def test_a_vendors_package_that_is_not_there_is_told_before_any_run(
    calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    monkeypatch.setattr("chaos.run.prepare.versions.has_module", lambda name: False)
    assert entry(["soak", "kill-rank.yaml", "--sdk", "vendor", "--reports", "reports", *more]) == codes.USAGE
    assert "mindio_ttp is not installed for this Python" in capsys.readouterr().err
    assert not calls.exists()


def test_the_cell_that_lacks_its_sdk_is_named(
    calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("chaos.run.prepare.versions.has_module", lambda name: False)
    path = Path("kill-rank.yaml")
    path.write_text(SCENARIO.replace("variables: {victim: 1}", "matrix: {victim: [1, 2]}"))
    assert entry(["soak", "kill-rank.yaml", "--sdk", "vendor", "--reports", "reports"]) == codes.USAGE
    refusal = capsys.readouterr().err
    assert "kill-rank.yaml: cell 'victim=1': --sdk vendor: the vendor's package mindio_ttp is not installed" in refusal
    assert "no cell of this call was started" in refusal
    assert not calls.exists()


def test_a_cell_that_cannot_work_is_refused_before_any_run(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("kill-rank.yaml")
    path.write_text(path.read_text().replace("step: 6", "step: 600"))
    assert entry(["soak", "kill-rank.yaml", "--reports", "reports"]) == codes.USAGE
    assert "kill-rank.yaml:" in capsys.readouterr().err
    assert not calls.exists()
