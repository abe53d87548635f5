"""Ranks of a launcher of the user's own: found by their environment, in this launch only, with their exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.agent.launcher.rank_variables import VARIABLE
from chaos.base.wait import wait_for
from chaos.machine.job.local import LocalJob, LocalPlatform
from chaos.machine.job.processes import FoundProcess
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.children import ExitStatus

Spec = Callable[..., LaunchSpec]

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("adopting")]

KEEPS_EXITS = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (6, 15)
SLEEP = f"{sys.executable} -c 'import time; time.sleep(1000)'"


def ranks_of(job: LocalJob, count: int) -> dict[int, FoundProcess]:
    def enough() -> dict[int, FoundProcess] | None:
        # A shell that has not started its Python yet is taken for the rank.
        found = [process for process in job.processes() if process.role == "rank" and "python" in process.cmdline[0]]
        return {process.rank or 0: process for process in found} if len(found) == count else None

    return wait_for(f"{count} ranks", enough, seconds=60)


def own(launch: LaunchSpec, **variables: str) -> LaunchSpec:
    return replace(launch, environment={**launch.environment, VARIABLE: "MY_RANK/MY_SIZE", **variables})


def test_the_topmost_python_with_a_number_is_the_rank_whatever_shells_start_it(spec: Spec) -> None:
    script = f'MY_RANK=0 sh -c "{SLEEP}; true" & MY_RANK=1 sh -c "exec {SLEEP}" & MY_RANK=2 {SLEEP} & wait'
    job = LocalPlatform().start(own(spec(script)))
    ranks = ranks_of(job, 3)
    assert sorted(ranks) == [0, 1, 2]
    assert [process.identity for process in job.processes() if process.role == "launcher"] == [job.launcher]
    assert job.stop(5).complete


def test_a_process_of_another_job_with_the_same_number_is_none_of_its_ranks(spec: Spec, tmp_path: Path) -> None:
    clean = {"PATH": os.environ["PATH"], VARIABLE: "MY_RANK/MY_SIZE", "MY_RANK": "0", "MY_SIZE": "1"}
    others = [
        subprocess.Popen(["sleep", "1000"], env={**clean, **run}, start_new_session=True, cwd=tmp_path)
        for run in ({}, {"CHAOS_RUN": "of-another-run"})
    ]
    try:
        job = LocalPlatform().start(own(spec(f"MY_RANK=0 {SLEEP} & wait")))
        found = ranks_of(job, 1)
        assert {process.pid for process in job.processes()}.isdisjoint(process.pid for process in others)
        assert found[0].pid not in {process.pid for process in others}
        assert job.stop(5).complete
        assert [process.poll() for process in others] == [None, None]
    finally:
        for process in others:
            process.kill()
            process.wait()


def test_a_number_that_the_shell_of_the_harness_has_makes_the_launcher_no_rank(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_RANK", "0")
    job = LocalPlatform().start(own(spec(f"MY_RANK=1 {SLEEP} & {SLEEP}")))
    assert sorted(ranks_of(job, 1)) == [1]
    assert job.stop(5).complete


def test_a_rank_that_a_shell_has_reaped_ends_as_the_kernel_says(spec: Spec) -> None:
    job = LocalPlatform().start(own(spec(f"MY_RANK=0 {SLEEP}; sleep 1000")))
    rank = ranks_of(job, 1)[0].identity
    job.signal(rank, signal.SIGKILL)
    status = wait_for("an exit status", lambda: job.exit_status(rank), seconds=60)
    assert status == (ExitStatus(signal=9) if KEEPS_EXITS else ExitStatus())
    assert job.stop(5).complete
