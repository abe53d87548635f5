"""The commands of docs/running-jobs.md that go on until the job ends do what the page says.

The others are run with those of all pages (tests/documents).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.kit import Ended
from tests.unit.running_jobs import own_job

PAGE = Path(__file__).parents[3] / "docs" / "running-jobs.md"


def commands(page: str) -> list[list[str]]:
    blocks = re.findall(r"^```sh unrun:[^\n]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_what_follows_a_job_ends_with_it(
    chaos: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listed = commands(PAGE.read_text("utf-8"))
    assert {command[1] for command in listed} == {"watch"}
    with own_job(tmp_path, logs="output/msrun_log", ranks=0) as job:
        for program, *arguments in listed:
            job.start(0, "sleep", "1")
            ended = chaos(*arguments)
            assert (program, ended.code) == ("chaos", 0), f"{arguments}: {ended.err}"
