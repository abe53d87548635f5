"""The writer's promises: nothing is lost, nothing is mixed up, one writer a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.history.jsonl import MAX_LINE
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriteError, HistoryWriter


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "history").mkdir()
    return tmp_path / "history" / "harness.jsonl"


def open_writer(path: Path, clock: Clock, *, resume: bool = False) -> HistoryWriter:
    return HistoryWriter(path, writer="harness", run="r1", clock=clock, resume=resume)


def test_the_first_line_says_who_writes_where(path: Path, clock: Clock) -> None:
    open_writer(path, clock).close()
    (first,) = lines(path)
    assert list(first)[:7] == ["seq", "mono", "wall", "event", "attempt", "rank", "pid"]
    assert (first["seq"], first["event"], first["writer"], first["run"]) == (0, "writer.start", "harness", "r1")
    assert first["host"] == os.uname().nodename
    assert first["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_recorded_event_reads_back_the_same(path: Path, clock: Clock) -> None:
    with open_writer(path, clock) as writer:
        written = writer.record("rank.exit", attempt="train", rank=2, pid=77, signal=9, code=None)
    assert written.source == "history/harness.jsonl:2"
    assert read_history(path.parent).select("rank.exit") == [written]


def test_an_event_is_on_disk_when_record_returns_even_if_the_process_is_then_killed(path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from chaos.history.writer import HistoryWriter; from chaos.base.clock import SystemClock\n"
        "w = HistoryWriter(Path(sys.argv[1]), writer='harness', run='r', clock=SystemClock())\n"
        "w.record('last'); os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == -9
    assert [line["event"] for line in lines(path)] == ["writer.start", "last"]


def test_threads_share_a_writer_without_gaps_and_with_a_clock_that_never_runs_back(path: Path) -> None:
    with open_writer(path, SYSTEM_CLOCK) as writer:
        threads = [
            threading.Thread(target=lambda: [writer.record("tick", text="x" * 3000) for _ in range(50)]) for _ in "abcd"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    history = read_history(path.parent)
    assert history.problems == ()
    assert [event.seq for event in history.events] == list(range(201))


def test_a_file_has_one_writer(path: Path, clock: Clock) -> None:
    open_writer(path, clock).close()
    with pytest.raises(HistoryWriteError, match="exists; a history file has one writer"):
        open_writer(path, clock)


def test_a_link_is_not_written_through(path: Path, clock: Clock, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HistoryWriteError):
        open_writer(path, clock, resume=True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("tail", [b"", b'{"seq":2,"mo', b"\n"])
def test_resume_goes_on_after_the_last_whole_line(path: Path, clock: Clock, tail: bytes) -> None:
    with open_writer(path, clock) as writer:
        writer.record("one")
    path.write_bytes(path.read_bytes() + tail)
    with open_writer(path, clock, resume=True) as writer:
        two = writer.record("two")
    history = read_history(path.parent)
    assert [(event.seq, event.event) for event in history.events] == [
        (0, "writer.start"),
        (1, "one"),
        (2, "writer.resume"),
        (3, "two"),
    ]
    assert history.last() == two, "and it knows its line"
    assert {problem.kind for problem in history.problems} == ({"torn-line"} if tail else set())


def test_resume_of_a_missing_or_empty_file_starts_it(path: Path, clock: Clock) -> None:
    open_writer(path, clock, resume=True).close()
    path.write_bytes(b"")
    open_writer(path, clock, resume=True).close()
    assert [line["event"] for line in lines(path)] == ["writer.start"]


@pytest.mark.parametrize(
    "data", [{"x": float("nan")}, {"x": object()}, {"seq": 1}, {"event": "y"}, {"x": "y" * MAX_LINE}]
)
def test_what_cannot_be_recorded_is_refused_and_leaves_no_gap(
    path: Path, clock: Clock, data: dict[str, object]
) -> None:
    with open_writer(path, clock) as writer:
        with pytest.raises((ValueError, TypeError)):
            writer.record("bad", **data)  # type: ignore[arg-type]
        assert writer.record("good").seq == 1
    assert [line["event"] for line in lines(path)] == ["writer.start", "good"]


def test_a_short_write_is_an_error_and_the_next_line_survives_it(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with open_writer(path, clock) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
            with pytest.raises(HistoryWriteError, match="only 10 of"):
                writer.record("torn")
        after = writer.record("after")
    history = read_history(path.parent)
    assert history.last("after") == after
    assert after.seq == 1
    assert [problem.kind for problem in history.problems] == ["garbled-line"]


def test_a_closed_writer_refuses(path: Path, clock: Clock) -> None:
    writer = open_writer(path, clock)
    writer.close()
    writer.close()
    with pytest.raises(HistoryWriteError, match="is closed"):
        writer.record("late")
