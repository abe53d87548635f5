"""The commands of docs/running-jobs.md that go on until the job ends do what the page says.

The others are run with those of all pages (tests/documents).
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.unit.running_jobs import own_job

PAGE = Path(__file__).parents[3] / "docs" / "running-jobs.md"

IMPATIENT = """
import runpy
import chaos.run.watching
chaos.run.watching.GRACE_SECONDS = 0.5
runpy.run_module("chaos", run_name="__main__")
"""
"""chaos that does not wait half a minute for a job to be started again."""


def commands(page: str) -> list[list[str]]:
    blocks = re.findall(r"^```sh unrun:[^\n]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_what_follows_a_job_ends_with_it(tmp_path: Path) -> None:
    listed = commands(PAGE.read_text("utf-8"))
    assert [command[:2] for command in listed] == [["chaos", "watch"]] * len(listed) != []
    with own_job(tmp_path, logs="output/msrun_log", ranks=0) as job:
        for _, *arguments in listed:
            rank = job.start(0)
            program = [sys.executable, "-c", IMPATIENT, *arguments]
            with subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as chaos:
                assert chaos.stdout is not None
                assert str(rank.pid) in chaos.stdout.readline()
                rank.kill()
                chaos.stdout.read()
                assert chaos.wait() == 0, arguments
