"""Watching a running job tells its deaths, restarts, stops, steps and checkpoints, and changes nothing of it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from chaos.attach import watched_checkpoints
from chaos.attach.event import JobEvent
from chaos.attach.watched_checkpoints import WatchedCheckpoints
from chaos.attach.watching import GRACE_SECONDS, StepView, Watch
from chaos.base.clock import Clock
from chaos.base.wait import wait_for
from chaos.cli.watch.view import PlainView, TableView, headline
from chaos.jobs.kind import JobError
from chaos.machine.linux.containers import Container
from chaos.machine.linux.pidfd import PidfdUnsupported
from chaos.machine.linux.process import state
from chaos.machine.linux.procfs import command_line
from chaos.machine.running.running import JobProcess, survey
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.reader import built_in_readers
from tests.kit.jobs.running_jobs import OwnJob, launched_job, own_job
from tests.unit.conftest import MakeDeep

pytestmark = pytest.mark.processes

Watching = Callable[..., Watch]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[OwnJob]:
    with own_job(tmp_path / "job") as job:
        yield job


@pytest.fixture
def watching_job(job: OwnJob, clock: Clock) -> Iterator[Watch]:
    """Watched from its beginning: its first look is over. A sleep of the clock is all that time needs to pass."""
    watch = Watch(str(job.logs), here=Path("/"), readers=built_in_readers(), clock=clock)
    assert told(watch.look(), "rank.found") == [(0, job.ranks[0].pid), (1, job.ranks[1].pid)]
    yield watch
    watch.close()


def told(happened: list[JobEvent], event: str) -> list[tuple[int | None, int | None]]:
    return [(job_event.rank, job_event.pid) for job_event in happened if job_event.event == event]


def log(job: OwnJob, rank: int, text: str) -> None:
    with (job.logs / f"worker_{rank}.log").open("a") as file:
        file.write(text)


def test_a_worker_without_a_number_is_shown_once_its_log_says_its_rank(tmp_path: Path, clock: Clock) -> None:
    with own_job(tmp_path / "job", ranks=0) as job:
        started = job.start(0, MS_NODE_ID="", TZ="UTC0")
        watch = Watch(str(job.logs), here=Path("/"), readers=[], clock=clock)
        try:
            clock.sleep(GRACE_SECONDS + 1)
            assert (watch.look(), watch.look(), watch.ended) == ([], [], False)
            now = f"{datetime.now(timezone.utc):%Y-%m-%d-%H:%M:%S}"
            prefix = f"[WARNING] DISTRIBUTED({started.pid},7fb1,python):{now}.689.115 [a.cc:428] PostProcess]"
            log(job, 0, f"{prefix} This node worker-a rank id: 5\n")
            assert told(watch.look(), "rank.found") == [(5, started.pid)]
        finally:
            watch.close()


def test_a_death_is_told_with_the_kernels_word(job: OwnJob, watching_job: Watch) -> None:
    job.ranks[1].kill()
    wait_for("its end", lambda: state(watching_job.ranks[1].process.identity) == "zombie", seconds=120)
    (exited,) = [event for event in watching_job.look() if event.event == "rank.exit"]
    assert (exited.rank, exited.pid, exited.data["signal"]) == (1, job.ranks[1].pid, 9)
    assert watching_job.ranks[1].state == "ended, signal 9"
    assert not watching_job.ended
    assert told(watching_job.look(), "rank.exit") == []


def test_a_kernel_without_process_descriptors_shows_the_same(
    job: OwnJob, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(identity: object) -> int:
        raise PidfdUnsupported("needs Linux 5.3")

    monkeypatch.setattr("chaos.machine.running.adopted.open_process", unsupported)
    watch = Watch(str(job.logs), here=Path("/"), readers=[], clock=clock)
    assert len(told(watch.look(), "rank.found")) == 2
    job.ranks[1].kill()
    job.ranks[1].wait()
    assert told(watch.look(), "rank.exit") == [(1, job.ranks[1].pid)]
    assert (watch.ranks[1].state, watch.ended) == ("ended, unknown", False)


def test_a_new_process_of_a_rank_is_a_restart(job: OwnJob, watching_job: Watch) -> None:
    before = job.ranks[1]
    before.kill()
    before.wait()
    job.start(1)
    (again,) = [event for event in watching_job.look() if event.event == "rank.restarted"]
    assert (again.rank, again.pid, again.data["instead_of"]) == (1, job.ranks[1].pid, before.pid)
    assert (watching_job.ranks[1].state, watching_job.ranks[1].starts) == ("running", 2)


def test_the_last_lines_and_the_end_of_a_process_come_before_the_next_process_of_its_rank(
    job: OwnJob, watching_job: Watch
) -> None:
    """torchrun starts ranks again between two looks."""
    before = job.ranks[1]
    log(job, 1, "epoch: 1 step: 7, loss is 0.25\n")
    before.kill()
    before.wait()
    (job.logs / "worker_1.log").rename(job.logs / "worker_1.log.1")
    job.start(1)
    seen = [(event.event, event.rank, event.pid) for event in watching_job.look()]
    again = job.ranks[1].pid
    assert seen == [("log", 1, before.pid), ("rank.exit", 1, before.pid), ("rank.restarted", 1, again)]
    assert watching_job.ranks[1].state == "running"


def test_steps_in_a_file_of_several_ranks_are_those_of_the_file_unless_a_line_names_its_rank(
    tmp_path: Path, clock: Clock
) -> None:
    """As the output of torchrun is without ``--redirects``."""
    with own_job(tmp_path / "job", ranks=0) as job:
        shared = tmp_path / "job" / "torchrun.out"
        for rank in (0, 1):
            process = job.start(rank, "sh", "-c", f'exec >>"{shared}" 2>&1; exec sleep 1000')
            wait_for("its exec", lambda pid=process.pid: command_line(pid)[:1] == ("sleep",), seconds=120)  # type: ignore[misc]
        watch = Watch(str(job.work), here=Path("/"), readers=[*built_in_readers(), NamedRank()], clock=clock)
        try:
            watch.look()
            with shared.open("a") as file:
                file.write("epoch: 1 step: 7, loss is 0.25\nrank 1 step 3\n")
            seen = [(event.rank, event.data["kind"]) for event in watch.look() if event.event == "log"]
            assert seen == [(None, "train.loss"), (1, "train.step")]
            assert watch.shared == {str(shared): StepView("1:7", "0.25")}
            assert (watch.ranks[0].step, watch.ranks[1].step) == ("", "3")
            stream = StringIO()
            PlainView(watch, stream).end_look()
            assert stream.getvalue() == f"steps: rank 1 at 3, at 1:7 loss 0.25 (no rank named in {shared})\n"
            console = Console(file=(drawn := StringIO()), width=300)
            console.print(TableView(watch).table())
            assert f"no rank named in {shared}" in drawn.getvalue()
        finally:
            watch.close()


class NamedRank(LogReader):
    """Lines that name their rank."""

    name = "named-rank"

    def recognises(self, first_lines: Sequence[str]) -> bool:
        return False

    def read(self, line: str) -> LogEvent | None:
        match = re.fullmatch(r"rank (\d+) step (\d+)", line)
        return LogEvent("train.step", step=int(match[2]), rank=int(match[1])) if match else None


def test_a_stop_and_its_end_are_told(job: OwnJob, watching_job: Watch) -> None:
    identity = watching_job.ranks[0].process.identity
    for number, now, event in (
        (signal.SIGSTOP, "stopped", "rank.stopped"),
        (signal.SIGCONT, "alive", "rank.continued"),
    ):
        job.ranks[0].send_signal(number)
        wait_for(now, lambda now=now: state(identity) == now, seconds=120)  # type: ignore[misc]
        assert told(watching_job.look(), event) == [(0, job.ranks[0].pid)]


def test_steps_losses_and_recoveries_are_read_from_the_logs_that_the_ranks_have_open(
    job: OwnJob, watching_job: Watch
) -> None:
    log(job, 0, "epoch: 1 step: 7, loss is 0.25\n")
    log(job, 1, "Enter _tft_stop_callback device_id: 1\n")
    seen = [(event.rank, event.data["kind"]) for event in watching_job.look() if event.event == "log"]
    assert seen == [(0, "train.loss"), (1, "tft.handler_begin")]
    assert (watching_job.ranks[0].step, watching_job.ranks[0].loss) == ("1:7", "0.25")


def test_the_log_of_the_sdk_is_followed_because_a_rank_writes_it(job: OwnJob, tmp_path: Path, clock: Clock) -> None:
    elsewhere = tmp_path / "elsewhere" / "ttp_log.log.77"
    elsewhere.parent.mkdir()
    line = "2026-11-21 01:32:19.903248 30710 warning [30710][TTP controller.cpp:2518] nextState: STATE_OP_DUMP\n"
    job.start(3, "sh", "-c", f'exec 7>>"{elsewhere}"; printf "%s" "$LINE" >&7; exec sleep 1000', LINE=line)
    watch = Watch(str(job.logs), here=Path("/"), readers=built_in_readers(), clock=clock)
    try:
        happened = wait_for("the line", lambda: [event for event in watch.look() if event.event == "log"], seconds=120)
        assert [(event.rank, event.data["kind"]) for event in happened] == [(3, "ttp.state")]
    finally:
        watch.close()


def test_a_checkpoint_that_appears_is_told_once_and_those_from_before_are_not(
    job: OwnJob, watching_job: Watch, clock: Clock
) -> None:
    place = job.work / "checkpoints" / "rank_1"
    place.mkdir(parents=True)
    (place / "mlp-1_5.tmp").touch()
    clock.sleep(6)
    assert told(watching_job.look(), "checkpoint") == []
    (place / "mlp-1_5.tmp").rename(place / "mlp-1_5.ckpt")
    clock.sleep(6)
    (saved,) = [event for event in watching_job.look() if event.event == "checkpoint"]
    assert (saved.rank, saved.data["epoch"], saved.data["step_in_epoch"], saved.data["step"]) == (1, 1, 5, None)
    clock.sleep(6)
    assert told(watching_job.look(), "checkpoint") == []


def test_what_is_saved_beside_the_named_directory_and_in_it_is_told_once_each(
    job: OwnJob, watching_job: Watch, clock: Clock
) -> None:
    """The ranks log in one directory and save in another, both below the one that they work in."""
    for place, step in ((job.work / "checkpoint", 5), (job.logs, 6)):
        (place / "rank_0").mkdir(parents=True)
        (place / "rank_0" / f"mlp-1_{step}.ckpt").touch()
    clock.sleep(6)
    seen = [
        (event.data["path"], event.data["step_in_epoch"])
        for event in watching_job.look()
        if event.event == "checkpoint"
    ]
    assert seen == [(f"{job.work}/checkpoint/rank_0/mlp-1_5.ckpt", 5), (f"{job.logs}/rank_0/mlp-1_6.ckpt", 6)]


def test_checkpoints_that_lie_in_no_directory_of_a_rank_are_told_with_the_rank_in_their_names(
    job: OwnJob, watching_job: Watch, clock: Clock
) -> None:
    for name in ("mindformers_rank_3-10_1.safetensors", "ckpt_dir/group_0/mlp-1_5.ckpt"):
        (job.work / name).parent.mkdir(parents=True, exist_ok=True)
        (job.work / name).touch()
    clock.sleep(6)
    seen = [(event.rank, event.data["step_in_epoch"]) for event in watching_job.look() if event.event == "checkpoint"]
    assert seen == [(None, 5), (3, 1)]


def test_checkpoints_are_told_in_the_order_of_their_steps_and_by_which_step_it_is(
    job: OwnJob, watching_job: Watch, clock: Clock
) -> None:
    """A name counts within the epoch, the directory of an end-of-life save or of an iteration over the whole job."""
    for name in (
        "rank_1/p-2_100.ckpt",
        "rank_1/p-2_95.ckpt",
        "rank_1/p-10_1.ckpt",
        "rank_1/p-1_200.ckpt",
        "ttp_saved_checkpoints-step_297/rank_1/ttp_rank_1-2_97.ckpt",
        "iteration_00000300/a-model-0000001-0000004.safetensors",
    ):
        (job.work / name).parent.mkdir(parents=True, exist_ok=True)
        (job.work / name).touch()
    clock.sleep(6)
    names = ("epoch", "step_in_epoch", "step")
    seen = [tuple(event.data[name] for name in names) for event in watching_job.look() if event.event == "checkpoint"]
    assert seen == [
        (1, 200, None),
        (None, None, 300),
        (2, 95, None),
        (2, 97, 297),
        (2, 100, None),
        (10, 1, None),
    ]


def test_where_a_directory_for_checkpoints_is_given_no_other_is_searched(job: OwnJob, clock: Clock) -> None:
    watch = Watch(str(job.logs), here=Path("/"), readers=[], checkpoints=job.logs, clock=clock)
    watch.look()
    for place in (job.work, job.logs):
        (place / "rank_0").mkdir()
        (place / "rank_0" / "mlp-1_5.ckpt").touch()
    clock.sleep(6)
    seen = [event.data["path"] for event in watch.look() if event.event == "checkpoint"]
    assert seen == [f"{job.logs}/rank_0/mlp-1_5.ckpt"]
    watch.close()


def test_a_container_that_is_started_again_shows_none_of_its_old_checkpoints_as_new(job: OwnJob, clock: Clock) -> None:
    """It is reached through one of its processes, and by another one when that has ended."""

    def contained() -> list[JobProcess]:
        (own,) = [
            running_job
            for running_job in survey().jobs
            if running_job.ranks and running_job.ranks[0].directories.logs == str(job.logs)
        ]
        return [replace(process, container=Container("c1", 7)) for process in own.ranks]

    search = WatchedCheckpoints(None, clock)
    search.search_working_directories(contained())
    place = job.work / "rank_0"
    place.mkdir()
    assert list(search.look()) == []
    for step in (5, 6):
        (place / f"mlp-1_{step}.ckpt").touch()
        clock.sleep(6)
        assert [event.data["path"] for event in search.look()] == [f"{place}/mlp-1_{step}.ckpt"]
        end(job)
        job.start(0)
        search.search_working_directories(contained())


def test_a_directory_with_too_many_files_is_not_searched_again_and_again(
    job: OwnJob, watching_job: Watch, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_checkpoints, "MAX_FILES", 2)
    (job.work / "data").touch()
    clock.sleep(6)
    (given_up,) = [event.data for event in watching_job.look() if event.event == "checkpoints.not_searched"]
    assert given_up["directory"] == str(job.work)
    clock.sleep(6)
    assert told(watching_job.look(), "checkpoints.not_searched") == []


def test_the_end_of_the_job_comes_after_the_last_lines_of_its_logs(
    job: OwnJob, watching_job: Watch, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(job)
    assert watching_job.look()[-1].event == "ranks.gone"
    clock.sleep(GRACE_SECONDS)

    def last_line() -> list[JobEvent]:
        """In the same look, but after the logs were read."""
        log(job, 0, "epoch: 1 step: 9, loss is 0.125\nwhat is this?\n\nand this?\n")
        return []

    monkeypatch.setattr(watching_job._checkpoints, "look", last_line)
    line, ended = watching_job.look()
    assert (line.event, ended.event) == ("log", "job.end")
    assert list(ended.data["unknown_lines"].values()) == [2], "counted, and not lost"
    text = headline(ended)
    assert text is not None and text.startswith(
        "the job has ended: no rank of it is left; no reader knows 2 lines of /"
    )
    assert watching_job.ended and watching_job.ranks[0].step == "1:9"


def end(job: OwnJob) -> None:
    for process in job.ranks.values():
        process.kill()
        process.wait()


def test_a_job_whose_ranks_are_all_started_again_within_the_grace_time_goes_on(
    job: OwnJob, watching_job: Watch, clock: Clock
) -> None:
    end(job)
    (gone,) = [event for event in watching_job.look() if event.event == "ranks.gone"]
    assert gone.data == {"launcher": None, "grace": GRACE_SECONDS}
    clock.sleep(GRACE_SECONDS - 1)
    assert watching_job.look() == [] and not watching_job.ended
    job.start(0)
    assert told(watching_job.look(), "rank.restarted") == [(0, job.ranks[0].pid)]
    clock.sleep(GRACE_SECONDS)
    assert not told(watching_job.look(), "job.end")
    end(job)
    assert told(watching_job.look(), "ranks.gone") and not watching_job.ended
    clock.sleep(GRACE_SECONDS)
    assert told(watching_job.look(), "job.end") and watching_job.ended


HELPED = """
import subprocess, sys, time
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
with open(sys.argv[1], "w") as told:
    told.write(f"{helper.pid}\\n")
time.sleep(1000)
"""


def test_the_next_launch_is_told_although_the_last_one_has_left_a_process(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "helper"
    with own_job(tmp_path / "job", ranks=0) as job:
        job.start(0, sys.executable, "-c", HELPED, str(path))
        wait_for("its helper", lambda: path.exists() and path.read_text().endswith("\n"), seconds=120)
        helper = int(path.read_text())
        watch = Watch(str(job.logs), here=Path("/"), readers=[], clock=clock)
        try:
            assert told(watch.look(), "rank.found") == [(0, job.ranks[0].pid)]
            end(job)
            assert told(watch.look(), "ranks.gone") == [(None, None)]
            (left,) = [
                running_job
                for running_job in survey().jobs
                if running_job.ranks and running_job.ranks[0].directories.logs == str(job.logs)
            ]
            assert left.left_over and left.ranks[0].pid == helper
            job.port = 9001
            job.start(0)
            assert told(watch.look(), "rank.restarted") == [(0, job.ranks[0].pid)]
        finally:
            watch.close()
            os.kill(helper, signal.SIGKILL)


def test_a_job_does_not_end_while_its_launcher_lives(tmp_path: Path, clock: Clock) -> None:
    """As RSC and MindCluster do: every rank is killed, and started again a while later."""

    def kill_both() -> None:
        for view in watch.ranks.values():
            os.kill(view.process.pid, signal.SIGKILL)
        wait_for(
            "their ends",
            lambda: all(state(view.process.identity) == "zombie" for view in watch.ranks.values()),
            seconds=120,
        )

    with launched_job(tmp_path / "job") as job:
        wait_for("the ranks", lambda: len(ranks_of(job.logs)) == 2, seconds=120)
        watch = Watch(str(job.logs), here=Path("/"), readers=[], clock=clock)
        try:
            assert len(told(watch.look(), "rank.found")) == 2
            kill_both()
            (gone,) = [event for event in watch.look() if event.event == "ranks.gone"]
            assert gone.data["launcher"] == job.launcher.pid
            clock.sleep(10 * GRACE_SECONDS)
            assert watch.look() == [] and not watch.ended
            job.start_again()
            wait_for("the ranks", lambda: len(ranks_of(job.logs)) == 2, seconds=120)
            assert [rank for rank, _ in told(watch.look(), "rank.restarted")] == [0, 1]
            kill_both()
            job.end_launcher()
            assert told(watch.look(), "ranks.gone") and not watch.ended
            clock.sleep(GRACE_SECONDS)
            assert told(watch.look(), "job.end")
        finally:
            watch.close()


def ranks_of(logs: Path) -> list[int | None]:
    return [process.rank for job in survey().jobs for process in job.ranks if process.directories.logs == str(logs)]


def test_a_job_that_only_a_pid_names_ends_with_its_last_process(job: OwnJob, clock: Clock) -> None:
    """Nothing would tell what is started later for the same job."""
    watch = Watch(str(job.ranks[0].pid), here=Path("/"), readers=[], clock=clock)
    watch.look()
    end(job)
    assert watch.look()[-1].event == "job.end"
    watch.close()


def test_watching_leaves_the_job_as_it_was(job: OwnJob, watching_job: Watch) -> None:
    def files() -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_size) for path in job.work.rglob("*"))

    before, identities = files(), job.identities()
    for _ in range(3):
        assert watching_job.look() == []
    assert (files(), job.identities()) == (before, identities)
    assert {state(identity) for identity in identities.values()} == {"alive"}


def test_a_directory_without_a_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="no job on this host"):
        Watch(str(tmp_path), here=Path("/"), readers=[])
    with pytest.raises(JobError, match="does not belong to a job with ranks"):
        Watch(str(os.getppid()), here=Path("/"), readers=[])


def test_directories_too_deep_to_be_searched_are_told_once_and_the_rest_is_searched(
    tmp_path: Path, clock: Clock, make_deep: MakeDeep
) -> None:
    make_deep(tmp_path / "work" / "deep")
    search = WatchedCheckpoints(tmp_path / "work", clock)
    (event,) = search.look()
    assert (event.event, event.data) == (
        "checkpoints.not_searched",
        {"directory": str(tmp_path / "work"), "levels": 256},
    )
    assert str(headline(event)).startswith(f"{tmp_path / 'work'} has directories nested too deeply")
    (tmp_path / "work" / "rank_0").mkdir()
    (tmp_path / "work" / "rank_0" / "mlp-1_5.ckpt").touch()
    clock.sleep(6)
    assert [job_event.event for job_event in search.look()] == ["checkpoint"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"epoch": 1, "step_in_epoch": 7}, "1:7"),
        ({"printed_step": 7, "printed_of": 9}, "7"),  # as a script of PyTorch prints it
        ({"epoch": 2, "printed_step": 7}, "2:7"),
        ({"epoch": 2}, "2"),
        ({}, ""),
    ],
)
def test_a_step_is_shown_as_far_as_its_line_counts(
    job: OwnJob, clock: Clock, fields: dict[str, object], text: str
) -> None:
    class Reader(LogReader):
        name = "any"

        def recognises(self, first_lines: Sequence[str]) -> bool:
            return False

        def read(self, line: str) -> LogEvent | None:
            return LogEvent("train.loss", fields={**fields, "loss_text": line})

    watch = Watch(str(job.logs), here=Path("/"), readers=[Reader()], clock=clock)
    try:
        watch.look()
        log(job, 0, "0.5\n")
        watch.look()
        assert (watch.ranks[0].step, watch.ranks[0].loss) == (text, "0.5")
    finally:
        watch.close()
