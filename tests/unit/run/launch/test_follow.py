"""What is written while the run goes on is followed line by line, whatever state the file is in."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from chaos.agent.record import Record
from chaos.history.tail import TailedFile
from chaos.run.launch.follow import LogFollower, RankFollower

MEGABYTE = 1 << 20


def lines(tail: TailedFile) -> list[bytes]:
    return list(tail.new_lines())


@pytest.mark.parametrize("mapped", [False, True])
def test_lines_come_once_when_they_are_complete(tmp_path: Path, mapped: bool) -> None:
    path = tmp_path / "file"
    tail = TailedFile(path, mapped=mapped)
    assert lines(tail) == []
    with path.open("ab", buffering=0) as file:
        file.write(b"one\ntw")
        assert lines(tail) == [b"one"]
        assert lines(tail) == []
        file.write(b"o\nthree\n\n")
        assert lines(tail) == [b"two", b"three", b""]
        assert lines(tail) == []


def test_zeros_of_a_mapped_file_are_not_read_past(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b'{"a":1}\n{"b"' + bytes(100))
    tail = TailedFile(path, mapped=True)
    assert lines(tail) == [b'{"a":1}']
    with path.open("r+b") as file:
        # The end of a line may be seen before its beginning.
        file.seek(12)
        file.write(b"\0\0\0\n")
        file.flush()
        assert lines(tail) == []
        file.seek(12)
        file.write(b":2}\n")
        file.flush()
        assert lines(tail) == [b'{"b":2}']


def test_a_zero_in_a_log_does_not_end_it(tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    path.write_bytes(b"before\n\0\0binary\nafter\n")
    assert [line for _, line in LogFollower(tmp_path, 1).new_lines()] == ["before", "\0\0binary", "after"]


def test_a_log_of_any_bytes_is_text(tmp_path: Path) -> None:
    (tmp_path / "worker_0.log").write_bytes(b"\xff\xfe loss is 1\n")
    assert [line for _, line in LogFollower(tmp_path, 1).new_lines()] == ["\ufffd\ufffd loss is 1"]


def test_lines_longer_than_a_chunk_come_in_pieces_and_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"short\n" + b"x" * (20 * MEGABYTE) + b"\nlast\n")
    tail = TailedFile(path)
    tracemalloc.start()
    found: list[int] = []
    last = b""
    for _ in range(40):
        for line in tail.new_lines():
            found.append(len(line))
            last = line
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found[0], last) == (5, b"last")
    assert sum(found) == 5 + 20 * MEGABYTE + 4
    assert peak < 8 * MEGABYTE


def test_a_burst_of_more_than_a_chunk_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(400_000)))
    tail, found = TailedFile(path), list[bytes]()
    while new := lines(tail):
        found += new
    assert found == [b"%d" % number for number in range(400_000)]


def test_events_of_all_ranks_of_one_attempt_are_found_as_they_are_recorded(tmp_path: Path) -> None:
    follower = RankFollower(tmp_path, "train")
    assert list(follower.new_events()) == []
    first = Record(str(tmp_path), run="r", attempt="train", rank=0)
    (tmp_path / "resume-rank_0-1.jsonl").write_text('{"event":"step.begin"}\n')
    (tmp_path / "harness.jsonl").write_text('{"event":"run.start"}\n')
    (tmp_path / "train-rank_1-2.jsonl").write_text('not json\n[1]\n{"event":"step.begin","rank":1,"step":1}\n{"torn')
    assert [event["event"] for event in follower.new_events()] == ["writer.start", "step.begin"]
    first.write("step.begin", step=1)
    assert [(event["rank"], event["step"]) for event in follower.new_events()] == [(0, 1)]
    first.close()
    first.write("train.end")
    assert [event["event"] for event in follower.new_events()] == ["train.end"]


def test_growth_of_a_mapped_file_is_followed(tmp_path: Path) -> None:
    follower = RankFollower(tmp_path, "train")
    record = Record(str(tmp_path), run="r", attempt="train", rank=0)
    seen: list[int] = []
    for step in range(1, 3001):
        record.write("step.end", step=step, padding="x" * 400)
        if step % 100 == 0:
            seen += [event["step"] for event in follower.new_events() if "step" in event]
    assert seen == list(range(1, 3001))


def test_logs_of_ranks_and_of_the_launcher_are_told_apart(tmp_path: Path) -> None:
    follower = LogFollower(tmp_path, 2)
    for name in ("worker_0.log", "worker_1.log", "scheduler.log", "msrun.log", "other.log"):
        (tmp_path / name).write_text(f"line of {name}\nunfinished")
    assert list(follower.new_lines()) == [
        (0, "line of worker_0.log"),
        (1, "line of worker_1.log"),
        (None, "line of scheduler.log"),
        (None, "line of msrun.log"),
    ]
    assert list(follower.new_lines()) == []


def test_an_event_is_whole_json(tmp_path: Path) -> None:
    record = Record(str(tmp_path), run="r", attempt="train", rank=0)
    record.write("load.begin", path='a"b\n\u2028.ckpt')
    event = list(RankFollower(tmp_path, "train").new_events())[-1]
    assert event["path"] == 'a"b\n\u2028.ckpt'
    assert json.loads(json.dumps(event)) == event


def test_of_a_mapped_file_little_more_is_read_than_is_written(tmp_path: Path) -> None:
    """Of every rank such a file is looked at again and again, and most of it is not written yet."""
    path = tmp_path / "file"
    path.write_bytes(b"one\n" + bytes(4 * MEGABYTE))
    tail = TailedFile(path, mapped=True)
    tracemalloc.start()
    assert lines(tail) == [b"one"]
    assert lines(tail) == []
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < MEGABYTE / 4


def test_lines_of_a_mapped_file_come_whole_where_they_are_longer_than_one_reading(tmp_path: Path) -> None:
    path = tmp_path / "file"
    long = [b"%d" % number * size for number, size in enumerate((5000, 5000, 40_000, 200_000))]
    path.write_bytes(b"\n".join(long) + b"\n" + bytes(MEGABYTE))
    assert lines(TailedFile(path, mapped=True)) == long
