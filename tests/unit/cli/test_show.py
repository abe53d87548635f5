"""A result that nobody reads is still a result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.cli.commands.run import _print_result
from chaos.report.analyze import analyze
from chaos.run.options import RunOutcome
from tests.kit.runs.good_run import good_run

CODE = """
from pathlib import Path
from chaos.cli.show import show
from chaos.report.result import RecoveryResult, Result
show(Result("s", "", 1, "unknown", {}, (), (), RecoveryResult(None, {}, None), {}, {}, (), (), {}), Path("run"))
import sys; sys.exit(2)
"""


def test_the_exit_code_is_the_verdict_although_the_reader_has_gone() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", CODE], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")
    shown = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert shown.returncode == 2
    assert "unknown" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_an_interrupted_run_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = good_run()
    run.only("run.end")["interrupted"] = True
    analyze(run.write(tmp_path))
    _print_result(RunOutcome(tmp_path, "unknown", interrupted=True))
    assert capsys.readouterr().out.splitlines() == [
        "kill-rank: interrupted; job ended; faults undone; nothing left",
        f"every statement about it: chaos analyze {tmp_path} --all",
    ]
