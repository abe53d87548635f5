"""``chaos watch`` ends with the job, tells in lines, JSON or a history what has happened, and judges nothing."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console

from chaos.attach.event import JobEvent
from chaos.attach.watching import RankView
from chaos.base.wait import wait_for
from chaos.cli.watch.view import PlainView, TableView, headline
from chaos.history.reader import read_history
from tests.kit.jobs.running_jobs import OwnJob, own_job
from tests.unit.cli.kit import Ended

pytestmark = pytest.mark.processes

if TYPE_CHECKING:
    from chaos.attach.watching import Watch
    from chaos.machine.running.running import JobProcess


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OwnJob]:
    """Rank 1 ends by itself once it has logged a step, rank 0 when the file ``enough`` is there."""
    with own_job(tmp_path / "job", ranks=0) as job:
        job.start(0, "sh", "-c", "until test -e enough; do sleep 0.05; done")
        job.start(
            1, "sh", "-c", "echo 'epoch: 1 step: 7, loss is nan'; until test -e enough; do sleep 0.05; done; exit 3"
        )
        yield job


def watch(job: OwnJob, *options: str) -> tuple[int, list[str]]:
    """Watch the job, let it end once its ranks have been seen, and return the exit code and what was printed.

    It is named by a PID, so that no grace time has to pass until it has ended.
    """
    command = [sys.executable, "-m", "chaos", "watch", "--job", str(job.ranks[0].pid), *options]
    with subprocess.Popen(command, cwd=job.work, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in job.ranks]
        (job.work / "enough").touch()
        lines += process.stdout.readlines()
        return process.wait(), [line.rstrip("\n") for line in lines]


def test_lines_tell_ranks_steps_and_ends(job: OwnJob) -> None:
    code, lines = watch(job)
    assert code == 0
    assert f"rank 1: PID {job.ranks[1].pid}" in lines
    assert "steps: rank 1 at 1:7 loss nan" in lines
    assert "rank 1: ended with exit code 3" in lines  # the test has not collected it yet
    assert lines[-1] == "the job has ended: no rank of it is left"


@pytest.mark.parametrize(
    ("launcher", "text"),
    [
        (77, "no rank is left; the launcher, PID 77, lives and may start them again"),
        (None, "no rank is left; the job has ended if none is started within 30 s"),
    ],
)
def test_that_no_rank_is_left_tells_what_is_waited_for(launcher: int | None, text: str) -> None:
    assert headline(JobEvent("ranks.gone", 0, data={"launcher": launcher, "grace": 30.0})) == text


def test_a_line_of_no_known_rank_is_told_by_its_file() -> None:
    fields: dict[str, Any] = {"kind": "error.reported", "step": None, "fields": {}, "file": "train.log"}
    assert headline(JobEvent("log", 0, data=fields)) == "train.log: error.reported"


@pytest.mark.parametrize(("rank", "subject"), [(3, "rank 3"), (None, "no rank in its name")])
def test_a_checkpoint_without_a_rank_in_its_name_is_told_as_such(rank: int | None, subject: str) -> None:
    fields = {"path": "/job/iteration_00000005/a.ckpt", "epoch": None, "step": 5, "step_in_epoch": None}
    assert (
        headline(JobEvent("checkpoint", 0, rank, data=fields)) == f"{subject}: checkpoint of step 5, {fields['path']}"
    )


def test_a_checkpoint_whose_name_tells_the_step_in_its_epoch_is_told_by_both() -> None:
    fields = {"path": "/job/mlp-2_95.ckpt", "epoch": 2, "step": None, "step_in_epoch": 95}
    shown = headline(JobEvent("checkpoint", 0, 1, data=fields))
    assert shown == "rank 1: checkpoint of epoch 2, step 95 in it, /job/mlp-2_95.ckpt"


def test_json_and_the_history_tell_the_same(job: OwnJob, tmp_path: Path) -> None:
    _, lines = watch(job, "--json", "--record", str(tmp_path / "seen"))
    printed = [json.loads(line) for line in lines]
    history = read_history(tmp_path / "seen" / "history")
    assert history.problems == ()
    assert [record["event"] for record in printed] == [
        event.event for event in history.events if event.event != "writer.start"
    ]
    (exited,) = history.select("rank.exit", rank=1)
    assert exited.data["code"] == 3
    (loss,) = history.select("log", rank=1)
    assert loss.data["fields"]["loss"] == "nan"  # JSON has no NaN


def test_a_place_that_has_been_recorded_in_is_refused(chaos: Callable[..., Ended], job: OwnJob, tmp_path: Path) -> None:
    (tmp_path / "seen" / "history").mkdir(parents=True)
    (tmp_path / "seen" / "history" / "watch.jsonl").touch()
    ended = chaos("watch", "--job", str(job.logs), "--record", str(tmp_path / "seen"))
    assert (ended.code, "a history file has one writer" in ended.err) == (64, True)


def test_a_terminal_gets_a_table(job: OwnJob) -> None:
    here, there = pty.openpty()
    command = [sys.executable, "-m", "chaos", "watch", "--job", str(job.ranks[0].pid)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=environment)
    os.close(there)
    os.set_blocking(here, False)  # else the deadlines below would never be looked at
    shown = bytearray()

    def has(text: str) -> bool:
        with suppress(BlockingIOError):
            shown.extend(os.read(here, 1000))
        return text.encode() in shown

    wait_for("the table", lambda: has("1:7"), seconds=120)
    (job.work / "enough").touch()
    wait_for("the end", lambda: has("no rank of it is left"), seconds=120)
    assert process.wait(120) == 0
    os.close(here)
    assert b"container" in shown


def test_very_many_ranks_are_told_of_as_sets() -> None:
    """Those at the same step are one part of the line, and those of which the same is true one row of the table."""
    process = SimpleNamespace(pid=7, container=None)
    ranks = {rank: RankView(cast("JobProcess", process), step="1:6" if rank else "1:5") for rank in range(128)}
    watch, out = cast("Watch", SimpleNamespace(ranks=ranks, shared={})), io.StringIO()
    PlainView(watch, out).end_look()
    assert out.getvalue() == "steps: rank 0 at 1:5, ranks 1-127 at 1:6\n"
    console = Console(file=out, width=100)
    console.print(TableView(watch).table())
    rows = [line.split() for line in out.getvalue().splitlines()[1:]]
    assert rows == [
        ["ranks", "state", "step", "loss", "starts", "container"],
        ["0", "running", "1:5", "1"],
        ["1-127", "running", "1:6", "1"],
    ]


def test_ranks_are_a_strip_of_letters_above_the_table() -> None:
    process = cast("JobProcess", SimpleNamespace(pid=7, container=None))
    states = ["running", "stopped", "ended, exit code 0", "ended, signal 9", "ended, unknown"]
    ranks = {rank: RankView(process, state, step="1:6") for rank, state in enumerate(states)}
    ranks[5] = RankView(process)
    out = io.StringIO()
    Console(file=out, width=100).print(TableView(cast("Watch", SimpleNamespace(ranks=ranks, shared={}))).shown())
    strip, legend, *_ = out.getvalue().splitlines()
    assert strip.split() == ["0:00", "=TeX?s"]
    assert "X ended unplanned 1" in legend


def error(file: str, text: str, *, before: bool = False) -> JobEvent:
    fields = {"level": "ERROR", "text": text}
    return JobEvent("log", 0, 3, 7, {"kind": "mindspore.error", "step": None, "fields": fields, "file": file}, before)


def test_the_first_errors_of_each_log_are_shown_and_the_others_counted() -> None:
    out = io.StringIO()
    view = PlainView(cast("Watch", SimpleNamespace(ranks={}, shared={})), out)
    view.show(error("a.log", "long ago", before=True))
    for number in range(9):
        view.show(error("a.log", f"number {number}"))
    view.show(error("b.log", "another"))
    view.show(JobEvent("job.end", 0, data={}))
    *shown, left, end = out.getvalue().splitlines()
    assert shown == [
        *(f"rank 3: mindspore.error level=ERROR text=number {number}" for number in range(5)),
        "rank 3: mindspore.error level=ERROR text=another",
    ]
    assert left == "4 more lines of level ERROR in a.log: chaos logs FILE --kind error shows them"
    assert end.startswith("the job has ended")
