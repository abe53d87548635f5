"""Only the job that was named is meant, and only a rank that is clearly one process; else it is refused with a list."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from chaos.attach.choose import chosen_ranks, named_job
from chaos.base.wait import wait_for
from chaos.jobs.kind import JobError
from chaos.machine.running.running import JobProcess, RunningJob, survey
from tests.kit.jobs.running_jobs import OwnJob, own_job

LOADED = """
import mmap, time
with open("../_c_expression.so", "rb") as library:
    mapped = mmap.mmap(library.fileno(), 0, access=mmap.ACCESS_READ)
time.sleep(1000)
"""
"""What has MindSpore loaded, as far as /proc tells."""

FORKS = """
import os, sys, time
children = []
for _ in range(2):
    child = os.fork()
    if not child:
        time.sleep(1000)
    children.append(child)
with open(sys.argv[1], "w") as told:
    told.write(f"{children[0]} {children[1]}\\n")
time.sleep(1000)
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OwnJob]:
    with own_job(tmp_path / "one") as job:
        yield job


@pytest.fixture
def other(tmp_path: Path) -> Iterator[OwnJob]:
    """Another job with the same address and port."""
    with own_job(tmp_path / "two") as job:
        yield job


def meant(name: str | Path, *ranks: int, here: Path = Path("/")) -> list[JobProcess]:
    return chosen_ranks(named_job(survey(), str(name), here=here), ranks, str(name), here=here)


def refusal(name: str | Path, *ranks: int) -> str:
    with pytest.raises(JobError) as refused:
        meant(name, *ranks)
    return str(refused.value)


def test_a_job_is_named_by_its_logs_its_directory_or_a_pid(job: OwnJob, other: OwnJob, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(job.logs)
    for name in (job.logs, job.work, link, job.ranks[0].pid):
        (process,) = meant(str(name), 1)
        assert process.identity == job.identities()[1]
    (relative,) = meant("logs", 0, here=job.work)
    assert relative.identity == job.identities()[0]


def test_a_directory_above_the_job_does_not_name_it(job: OwnJob, tmp_path: Path) -> None:
    assert "no job on this host logs or works in that directory" in refusal(tmp_path, 1)
    assert "no job on this host" in refusal("/", 1)


def test_between_the_logs_and_the_working_directory_is_the_job_too(tmp_path: Path) -> None:
    with own_job(tmp_path / "work", logs="output/msrun_log", ranks=1) as job:
        (process,) = meant(tmp_path / "work" / "output", 0)
        assert process.pid == job.ranks[0].pid


def test_two_jobs_in_the_directory_are_refused_with_a_list(tmp_path: Path) -> None:
    with own_job(tmp_path, logs="a", ranks=1) as job, own_job(tmp_path, logs="b", ranks=1) as other:
        text = refusal(tmp_path, 0)
        assert "2 jobs run there" in text
        assert f"--job {job.ranks[0].pid} names it" in text and f"--job {other.ranks[0].pid} names it" in text
        (process,) = meant(tmp_path / "b", 0)
        assert process.pid == other.ranks[0].pid


def test_a_rank_that_runs_twice_is_refused_unless_its_own_pid_is_given(job: OwnJob) -> None:
    first, second = job.ranks[1], job.start(1)
    text = refusal(job.logs, 1)
    assert "the same rank runs twice" in text and f"PID {first.pid}" in text and f"PID {second.pid}" in text
    assert "the same rank runs twice" in refusal(job.logs, 0)  # which launch is meant is not clear
    (process,) = meant(str(first.pid), 1)
    assert process.pid == first.pid


def test_a_rank_of_another_node_is_refused(job: OwnJob) -> None:
    assert "not among the ranks of that job on this host (0-1 of 2)" in refusal(job.logs, 7)


def test_a_process_of_no_job_is_refused(job: OwnJob) -> None:
    assert f"process {os.getppid()} does not belong to a job with ranks" in refusal(str(os.getppid()), 0)
    assert f"started from it:\n  the job with ranks 0-1 that logs in {job.logs}" in refusal(str(os.getpid()), 0)
    assert "there is no process 4194999" in refusal("4194999", 0)
    assert "there is no such directory" in refusal("/nowhere", 0)


def test_a_job_of_chaos_run_is_refused(tmp_path: Path) -> None:
    with own_job(tmp_path / "work", ranks=0) as job:
        job.start(0, CHAOS_RUN="kill-rank-1")
        assert "`chaos run` has started this job (run kill-rank-1)" in refusal(job.logs, 0)


def test_a_rank_that_has_only_the_launch_in_common_with_the_directory_is_refused(tmp_path: Path) -> None:
    """One shell has started two jobs with one rank table; of each a single rank is left."""
    (tmp_path / "_c_expression.so").write_text("MindSpore's library")
    (tmp_path / "train.py").write_text(LOADED)
    said = "export RANK_SIZE=2 RANK_TABLE_FILE=/hccl.json"
    python = f"{sys.executable} ../train.py"
    script = f"{said}; cd a; RANK_ID=0 {python} > log & cd ../b; RANK_ID=1 {python} > log & wait"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    shell = subprocess.Popen(["bash", "-c", script], cwd=tmp_path, start_new_session=True)

    def both() -> RunningJob | None:
        logs = {str(tmp_path / name) for name in ("a", "b")}
        of_both = (
            running_job
            for running_job in survey().jobs
            if {rank.directories.logs for rank in running_job.ranks} == logs
        )
        return next((running_job for running_job in of_both if not any(rank.doubt for rank in running_job.ranks)), None)

    try:
        ranks = {process.rank: process.pid for process in wait_for("both", both, seconds=120).ranks}
        (process,) = meant(tmp_path / "a", 0)
        assert process.pid == ranks[0]
        assert f"neither logs nor works there; name it by its PID:\n  rank 1: PID {ranks[1]}" in refusal(
            tmp_path / "a", 1
        )
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


def test_what_dead_ranks_have_forked_is_none_of_them_whatever_its_command_line_says(tmp_path: Path) -> None:
    """A data worker has the rank's command line, environment and log, and is not the only one."""
    with own_job(tmp_path, ranks=0) as job:
        paths = [tmp_path / "0", tmp_path / "1"]
        for rank, path in enumerate(paths):
            job.start(rank, sys.executable, "-c", FORKS, str(path))
        left = [int(pid) for path in paths for pid in wait_for("its forks", partial(said, path), seconds=120).split()]
        try:
            (process,) = meant(job.logs, 0)
            assert process.pid == job.ranks[0].pid
            for process_of_rank in job.ranks.values():
                process_of_rank.kill()
                process_of_rank.wait()
            for name in (str(job.logs), str(left[0])):
                text = refusal(name, 0)
                assert "no rank runs there any more" in text and f"PID {left[0]}" in text
        finally:
            for pid in left:
                os.kill(pid, signal.SIGKILL)


def said(path: Path) -> str:
    text = path.read_text() if path.exists() else ""
    return text if text.endswith("\n") else ""
