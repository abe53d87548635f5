"""The agent's file: whole lines whatever ends the process, no gap in the numbers, nothing after the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.agent.record import Record
from chaos.history.reader import read_history
from tests.unit.agent.conftest import Events

CHUNK = 1 << 18


def file_of(history: Path) -> Path:
    (path,) = history.glob("*.jsonl")
    return path


def test_the_first_line_says_who_writes(record: Record, events: Events, history: Path) -> None:
    record.close()
    (event,) = events()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    assert (event.event, event.writer, event.attempt, event.rank, event.pid) == (
        "writer.start",
        "agent",
        "train",
        3,
        os.getpid(),
    )
    assert (event.data["run"], event.data["boot"]) == ("run-1", boot)
    assert file_of(history).name == f"train-rank_3-{os.getpid()}.jsonl"
    assert file_of(history).stat().st_mode & 0o777 == 0o600


def test_a_file_has_one_writer(record: Record, history: Path) -> None:
    with pytest.raises(FileExistsError):
        Record(str(history), run="run-1", attempt="train", rank=3)


def test_the_hot_path_writes_what_the_other_one_would(record: Record, events: Events) -> None:
    record.write("step.begin", step=7)
    record.step_writer("step.begin")(7)
    slow, fast = events("step.begin")
    assert (slow.data, slow.attempt, slow.rank, slow.pid) == (fast.data, fast.attempt, fast.rank, fast.pid)
    assert 0 < slow.mono <= fast.mono
    assert slow.wall > 0


def test_closing_cuts_off_what_was_not_written(record: Record, history: Path) -> None:
    record.write("step.end", step=1)
    assert file_of(history).read_bytes().endswith(b"\0")
    record.close()
    assert file_of(history).read_bytes().endswith(b'"step":1}\n')


def test_events_after_the_close_are_kept(record: Record, events: Events) -> None:
    step_end = record.step_writer("step.end")
    record.close()
    record.write("handler.enter", name="exit")
    step_end(9)
    assert [event.event for event in events()] == ["writer.start", "handler.enter", "step.end"]
    record.close()
    record.close()
    assert [event.seq for event in events()] == [0, 1, 2]


@pytest.mark.parametrize("closed", [False, True])
def test_the_file_grows_past_its_first_piece(record: Record, events: Events, closed: bool) -> None:
    step_end = record.step_writer("step.end")
    for step in range(1, 4001):
        step_end(step)
    record.write("initial", parameters={"w": "0" * (2 * CHUNK)})
    record.write("train.end")
    if closed:
        record.close()
    assert [event.data["step"] for event in events("step.end")] == list(range(1, 4001))
    assert len(events("initial")[0].data["parameters"]["w"]) == 2 * CHUNK
    assert len(events("train.end")) == 1


def test_an_event_that_json_cannot_hold_leaves_no_trace(record: Record, events: Events) -> None:
    with pytest.raises(TypeError):
        record.write("digest", loss=object())
    record.write("train.end")
    assert [event.event for event in events()] == ["writer.start", "train.end"]


def test_threads_leave_no_gap_in_the_numbers(record: Record, events: Events) -> None:
    def write(number: int) -> None:
        step_end = record.step_writer("step.end")
        for step in range(500):
            if step % 2:
                record.write("handler.enter", name="stop", thread=number)
            else:
                step_end(step)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The reader reports every number out of order.
    assert len(events()) == 1 + 8 * 500


WRITER = """
import sys, threading
from chaos.agent.record import Record
record = Record(sys.argv[1], run="r", attempt="train", rank=0)
threading.Thread(target=lambda: [record.write("digest", text="x" * 3000) for _ in iter(int, 1)], daemon=True).start()
print("writing", flush=True)
step_end = record.step_writer("step.end")
for step in iter(int, 1):
    step_end(step)
"""


@pytest.mark.parametrize("number", range(5))
def test_lines_are_whole_after_sigkill_in_the_middle_of_writing(history: Path, number: int) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(history)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"writing\n"
    path = file_of(history)
    while path.stat().st_size < (number + 2) * CHUNK:
        assert writer.poll() is None
    writer.kill()
    assert writer.wait() == -signal.SIGKILL
    writer.stdout.close()
    read = read_history(history)
    assert [problem for problem in read.problems if problem.kind != "torn-last-line"] == []
    assert [event.seq for event in read.events] == list(range(len(read.events)))
    assert len(read.events) > 10


def test_a_child_that_the_rank_forks_cannot_harm_its_file(record: Record, events: Events) -> None:
    """A data worker that ends in the ordinary way closes what it inherited."""
    step_end = record.step_writer("step.end")
    step_end(1)
    child = os.fork()
    if child == 0:
        try:
            record.write("step.end", step=99)
            step_end(99)
            record.close()
        finally:
            os._exit(0)
    step_end(2)
    assert os.waitpid(child, 0)[1] == 0
    step_end(3)
    assert [event.data["step"] for event in events("step.end")] == [1, 2, 3]


FULL = """
import os, sys
from chaos.agent.record import Record
record = Record(sys.argv[1], run="r", attempt="train", rank=0)
def no_space(descriptor, start, length):
    raise OSError(28, os.strerror(28))
os.posix_fallocate = no_space
written = 0
try:
    while True:
        record.write("digest", text="x" * 1000)
        written += 1
except OSError as error:
    print(written, error.errno)
"""


def test_a_full_disk_is_an_error_and_no_signal(history: Path) -> None:
    """Writing to a map that the disk has no room for would end the rank with SIGBUS."""
    done = subprocess.run([sys.executable, "-c", FULL, str(history)], capture_output=True, text=True, check=True)
    written, number = map(int, done.stdout.split())
    assert number == 28
    assert len(read_history(history).select("digest")) == written > 100
