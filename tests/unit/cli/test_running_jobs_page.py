"""Every command of docs/running-jobs.md does what the page says, on a job that runs already."""

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
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_every_command_of_the_page_works(
    chaos: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listed = commands(PAGE.read_text("utf-8"))
    assert {command[1] for command in listed} == {"inject", "watch", "heal"}
    with own_job(tmp_path, logs="output/msrun_log") as job:
        for program, *arguments in listed:
            if arguments[0] == "watch":  # it ends with the job
                for process in job.started:
                    process.kill()
                    process.wait()
                job.start(0, "sleep", "1")
            ended = chaos(*arguments)
            assert (program, ended.code) == ("chaos", 0), f"{arguments}: {ended.err}"
