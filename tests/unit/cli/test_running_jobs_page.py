"""The commands of docs/guides/running-jobs.md that run until the job ends, or need a connection, do what it says.

The others are run with those of all pages (tests/documents).
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.machine.linux.net.connections import refusal
from tests.kit.jobs.running_jobs import own_job

pytestmark = pytest.mark.processes

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "running-jobs.md"

WHY = refusal()

IMPATIENT = """
import runpy
import chaos.attach.watching
chaos.attach.watching.GRACE_SECONDS = 0.5
runpy.run_module("chaos", run_name="__main__")
"""
"""chaos that does not wait half a minute for a job to be started again."""


def commands(page: str, which: str) -> list[list[str]]:
    blocks = re.findall(r"^```sh unrun:[^\n]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    listed = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert {command[1] for command in listed} == {"watch", "inject"}
    return [command for command in listed if command[1] == which]


@pytest.mark.skipif(WHY is not None, reason=f"this machine's kernel resets no connections: {WHY}")
def test_connections_are_shown_and_reset(tmp_path: Path) -> None:
    listed = commands(PAGE.read_text("utf-8"), "inject")
    with (
        socket.create_server(("127.0.0.1", 0)) as scheduler,
        own_job(tmp_path, logs="output/msrun_log", ranks=0) as job,
    ):
        job.port = int(scheduler.getsockname()[1])
        client = (
            "import socket, sys, time; end = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); time.sleep(999)"
        )
        job.start(0, sys.executable, "-c", client, str(job.port))
        with scheduler.accept()[0] as end:
            for _, *arguments in listed:
                end.setblocking(False)
                with pytest.raises(BlockingIOError):
                    end.recv(1)
                program = [
                    sys.executable,
                    "-m",
                    "chaos",
                    *(argument.replace("8118", str(job.port)) for argument in arguments),
                ]
                subprocess.run(program, cwd=tmp_path, check=True)
            with pytest.raises(ConnectionResetError):
                end.recv(1)


def test_what_follows_a_job_ends_with_it(tmp_path: Path) -> None:
    listed = commands(PAGE.read_text("utf-8"), "watch")
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
