"""What the ranks of a running job log is told once, and of the rank that it is of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timezone
from pathlib import Path

import pytest

from chaos.attach.watched_logs import WatchedLogs
from chaos.base.wait import wait_for
from chaos.machine.linux.procfs import command_line
from chaos.machine.running.outputs import outputs_of, teed_outputs_of
from chaos.machine.running.running import JobProcess, survey
from chaos.observe.logs.reader import built_in_readers
from tests.kit.jobs.running_jobs import OwnJob, own_job

STEP = "{ Epoch:[  1/  1], step:[%5d/   10], loss:[1.438142/1.455182], per_step_time: 111ms, lr: 0.01"
PRINTED = (
    "2026-11-21 01:28:%02d,952 - mindformers/log[mindformers/core/callback/callback.py:747] - INFO - " + STEP + "\n"
)
WRITTEN = (
    "[INFO] 2026-11-21 01:28:%02d,952 [mindformers/core/callback/callback.py:747] print_output_info: " + STEP + "\n"
)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OwnJob]:
    with own_job(tmp_path / "job", ranks=0) as job:
        yield job


@pytest.fixture
def logs() -> Iterator[WatchedLogs]:
    logs = WatchedLogs(built_in_readers(timezone.utc))
    yield logs
    logs.close()


Start = Callable[..., JobProcess]


@pytest.fixture
def start(job: OwnJob) -> Start:
    """Starts a rank by a shell that redirects its outputs first."""

    def start(rank: int, redirect: str, files: int) -> JobProcess:
        process = job.start(rank, "sh", "-c", f"exec {redirect}; exec sleep 1000")
        wait_for("its exec", lambda: command_line(process.pid)[:1] == ("sleep",), seconds=120)
        assert len(outputs_of(process.pid)) == files
        return next(candidate for own in survey().jobs for candidate in own.ranks if candidate.pid == process.pid)

    return start


def told(logs: WatchedLogs) -> list[tuple[int | None, str, int | None]]:
    """Rank, kind and step of each event."""
    return [(None if one.process is None else one.process.rank, one.event.kind, one.event.step) for one in logs.read()]


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_line_that_stands_in_both_files_of_a_rank_is_told_once(job: OwnJob, start: Start, logs: WatchedLogs) -> None:
    worker, info = job.logs / "worker_0.log", job.work / "info.log"
    logs.follow([start(0, f'7>>"{info}"', 2)])
    add(worker, PRINTED % (1, 7) + PRINTED % (2, 8))
    add(info, WRITTEN % (1, 7))
    assert told(logs) == [(0, "train.step", 7), (0, "train.step", 8)]
    add(info, WRITTEN % (2, 8) + WRITTEN % (3, 9))
    assert told(logs) == [(0, "train.step", 9)]
    add(worker, PRINTED % (3, 9) + PRINTED % (4, 8))  # step 8 again, after a rollback
    add(info, WRITTEN % (4, 8))
    assert told(logs) == [(0, "train.step", 8)]


def test_lines_without_a_time_are_told_as_often_as_one_file_has_them(
    job: OwnJob, start: Start, logs: WatchedLogs
) -> None:
    worker, other = job.logs / "worker_0.log", job.work / "other.log"
    logs.follow([start(0, f'7>>"{other}"', 2)])
    line = "epoch: 1 step: 7, loss is 0.25\n"
    add(worker, line * 2)
    add(other, line * 3)
    assert [kind for _, kind, _ in told(logs)] == ["train.loss"] * 3


def test_a_step_that_the_next_process_of_a_rank_trains_again_is_told_again(
    job: OwnJob, start: Start, logs: WatchedLogs
) -> None:
    """torchrun gives each process of a rank files of its own; the lines of a script name no time."""
    for attempt in (job.work / "attempt_0.log", job.work / "attempt_1.log"):
        logs.follow([start(0, f'>>"{attempt}" 2>&1', 1)])
        add(attempt, "epoch: 1 step: 7, loss is 0.25\n")
        assert told(logs) == [(0, "train.loss", None)]
        job.ranks[0].kill()
        job.ranks[0].wait()


def test_the_same_line_of_two_ranks_is_told_of_both(job: OwnJob, start: Start, logs: WatchedLogs) -> None:
    logs.follow([start(rank, "7>&1", 1) for rank in (0, 1)])
    for rank in (0, 1):
        add(job.logs / f"worker_{rank}.log", PRINTED % (1, 7))
    assert told(logs) == [(0, "train.step", 7), (1, "train.step", 7)]


def test_a_line_in_a_file_that_ranks_share_is_of_none_unless_it_names_its_process(
    job: OwnJob, start: Start, logs: WatchedLogs
) -> None:
    shared = job.work / "train.log"
    ranks = [start(rank, f'>>"{shared}" 2>&1', 1) for rank in (0, 1)]
    logs.follow(ranks)
    add(shared, "epoch: 1 step: 7, loss is 0.25\n")
    assert [rank for rank, _, _ in told(logs)] == [None]
    named = "[WARNING] ME(%d:140535643880320,MainProcess):2026-11-21-01:28:56.320.000 [mindspore/train/model.py:192] "
    add(shared, named % ranks[1].pid + "uce wrapper report UCEError\n")
    assert told(logs) == [(1, "error.reported", None)]


def test_what_a_rank_prints_is_read_where_its_tee_writes_it(job: OwnJob, start: Start, logs: WatchedLogs) -> None:
    written = job.work / "train.txt"
    with subprocess.Popen(["tee", written], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as tee:
        assert tee.stdin is not None
        rank = start(0, f">/proc/{os.getpid()}/fd/{tee.stdin.fileno()} 2>&1", 0)
        wait_for("its tee", lambda: teed_outputs_of(rank.pid), seconds=120)
        logs.follow([rank])
        tee.stdin.write((PRINTED % (1, 7)).encode())
        tee.stdin.flush()
        wait_for("what was printed", lambda: written.stat().st_size, seconds=120)
        assert told(logs) == [(0, "train.step", 7)]
        tee.kill()


def test_what_ranks_write_into_the_launchers_output_is_taken(job: OwnJob, start: Start, logs: WatchedLogs) -> None:
    shared = job.work / "nohup.log"
    launcher, rank = (start(number, f'>>"{shared}" 2>&1', 1) for number in (0, 1))
    launcher = replace(launcher, role="launcher", rank=None)
    logs.follow([launcher])
    add(shared, PRINTED % (1, 7))
    assert told(logs) == []
    logs.follow([launcher, rank])
    add(shared, PRINTED % (2, 8))
    assert told(logs) == [(1, "train.step", 8)]


def test_a_launchers_own_line_is_not_taken_for_its_only_ranks(job: OwnJob, start: Start, logs: WatchedLogs) -> None:
    shared = job.work / "nohup.log"
    launcher, rank = (start(number, f'>>"{shared}" 2>&1', 1) for number in (0, 1))
    launcher = replace(launcher, role="launcher", rank=None)
    logs.follow([launcher, rank])
    add(shared, "All workers successfully exit\n" + PRINTED % (1, 7))
    assert told(logs) == [(None, "msrun.workers_done", None), (1, "train.step", 7)]


def test_a_rank_that_is_started_again_and_appends_to_its_log_is_the_one_that_writes_it(
    job: OwnJob, start: Start, logs: WatchedLogs
) -> None:
    shared = job.work / "rank.log"
    first = start(0, f'>>"{shared}" 2>&1', 1)
    logs.follow([first])
    job.ranks[0].kill()
    job.ranks[0].wait()
    again = start(0, f'>>"{shared}" 2>&1', 1)
    logs.follow([again])
    add(shared, PRINTED % (1, 7))
    assert [one.process for one in logs.read()] == [again]


def test_what_the_sdks_link_layer_tells_of_itself_is_nothing_of_the_job(
    job: OwnJob, start: Start, logs: WatchedLogs
) -> None:
    worker = job.logs / "worker_0.log"
    prefix = "2026-11-21 01:32:19.903248 info 30710 "
    logs.follow([start(0, "7>/dev/null", 1)])
    add(worker, f"{prefix}[ACC a.cpp:1] Worker 0 thread started\n{prefix}[TTP a.cpp:1] finish rename, rank:0\n")
    assert told(logs) == [(0, "ttp.renamed", None)]
