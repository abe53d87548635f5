"""The benchmark of judging works at a tiny size: its run is judged rightly, and a changed loss is found."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from chaos.report.analyze import analyze

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "benchmarks/judging.py", "--ranks", "64", "--steps", "20", "--repeats", "1", "--no-limits")


@pytest.fixture
def big_run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("big_run")


def test_a_tiny_run_is_judged_by_its_logs(big_run: ModuleType, tmp_path: Path) -> None:
    run = big_run.BigRun(tmp_path, 16, 20)
    run.make()
    result = analyze(tmp_path, write=False)
    assert [check.seen for check in result.checks if check.verdict == "fail"] == []
    assert any("320 losses of 16 ranks are equal, by the ranks' logs" in check.seen for check in result.checks)
    now = run.drift(11, 17)
    failed = [check.seen for check in analyze(tmp_path, write=False).checks if check.verdict == "fail"]
    assert any(f"rank 11, step 17: loss {now}" in seen for seen in failed)


@pytest.mark.nightly
def test_the_benchmark_runs_by_one_command(tmp_path: Path) -> None:
    command = [*COMMAND, "--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss of rank 59 at step 17 changed" in done.stdout
    assert list(tmp_path.iterdir()) == []
