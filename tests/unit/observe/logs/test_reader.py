"""Reading a log: the content chooses the reader, memory is bounded, no line is lost without being counted."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from datetime import timezone
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.observe.logs.lines import LineSplitter
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.reader import CHUNK, LogScan, built_in_readers, choose_reader, read_log
from chaos.observe.logs.records import split_records

READERS = built_in_readers(timezone.utc)
STEP_LINE = (
    "2026-11-21 {at} - mindformers/job/log[mindformers/core/callback/callback.py:747] - INFO - "
    "{{ Epoch:[  1/  1], step:[    {step}/    8], loss:[1.500000/1.500000], per_step_time: 1ms, lr: 0.01, "
    "overflow cond: False, loss_scale: 1.0, global_norm: [{norm}], train_throughput_per_npu: 2.8T"
)
OLD = STEP_LINE.format(at="01:00:00,000", step=3, norm="12.345")
NEW = STEP_LINE.format(at="02:00:00,000", step=1, norm="99.0")
RENAMED = b"2026-11-21 01:32:22.406025 30710 info [30710][TTP controller.cpp:2478] finish rename, rank:1\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ttp_log.log.30677", "ttp"),
        ("msrun.txt", "msrun"),
        ("scheduler.txt", "msrun"),
        ("worker.txt", "mindspore"),
        ("mindformers.txt", "mindformers"),
        ("digests_in_process.json", None),
    ],
)
def test_the_content_chooses_the_reader(data: Path, name: str, expected: str | None) -> None:
    reader = choose_reader((data / name).read_text().splitlines(), READERS)
    assert (reader.name if reader else None) == expected


def test_lines_of_the_sdk_inside_a_workers_log_are_read_too(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "worker_0.log"
    path.write_bytes((data / "worker.txt").read_bytes() + RENAMED)
    kinds = [event.kind for event in read_log(path, READERS)]
    assert kinds[-2:] == ["train.loss", "ttp.renamed"]
    assert "cluster.ready" in kinds


@pytest.mark.parametrize(
    ("name", "rank"), [("worker_3.log", 3), ("worker_3.before-1.log", 3), ("rank_5/info.log", 5), ("a.log", None)]
)
def test_what_a_rank_says_of_itself_has_its_rank_and_what_the_sdk_says_of_others_has_theirs(
    tmp_path: Path, name: str, rank: int | None
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    lost = b"[ERROR] DISTRIBUTED(5918,7f,python):2026-11-21-06:03:48.287.665 [a.cc:5] F] The node: 1 is timed out. \n"
    path.write_bytes(b"epoch: 1 step: 1, loss is 0.5\n" + RENAMED + lost)
    events = {event.kind: event for event in read_log(path, READERS)}
    assert (events["train.loss"].rank, events["ttp.renamed"].rank) == (rank, 1)
    assert (events["cluster.node_lost"].rank, events["cluster.node_lost"].fields["node"]) == (None, 1)


@pytest.mark.parametrize(
    ("name", "rank", "pid"),
    [
        ("rank_5/info.log.1", 5, None),
        ("worker_3.log.2", 3, None),
        ("rank_5/logs/mindspore.log.4711", 5, 4711),
        ("ttp_log.log.4711", None, 4711),
    ],
)
def test_a_log_that_was_put_aside_is_told_from_that_of_a_process(
    tmp_path: Path, name: str, rank: int | None, pid: int | None
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("epoch: 1 step: 1, loss is 0.5\n")
    (event,) = read_log(path, READERS)
    assert (event.rank, event.pid) == (rank, pid)


def test_the_rank_that_the_cluster_gives_counts_for_more_than_the_name_of_the_file(tmp_path: Path) -> None:
    """Without --node_rank msrun counts the logs of each node from 0."""
    path = tmp_path / "worker_0.log"
    message = "[INFO] DISTRIBUTED(5918,7f,python):2026-11-21-06:03:48.287.665 [a.cc:5] F] This node 9 rank id: 8"
    path.write_text(f"{message}\nepoch: 1 step: 1, loss is 0.5\n")
    assert [event.rank for event in read_log(path, READERS)] == [8, 8]
    other = message.replace("5918", "5919").replace("node 9 rank id: 8", "node 3 rank id: 2")
    caught = "[ERROR] ME({pid}:1,M):2026-11-21-06:03:20.673.000 [m.py:1] uce wrapper report UCEError"
    lines = (message, other, caught.format(pid=5918), caught.format(pid=5919), "epoch: 1 step: 1, loss is 0.5")
    for name, ranks in (("worker_0.log", [8, 2, 8, 2, 0]), ("job.log", [8, 2, None, None, None])):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        assert [event.rank for event in read_log(tmp_path / name, READERS)] == ranks


def events_of(path: Path, text: str) -> list[tuple[str, int | None, int | None, object]]:
    path.write_text(text + "\n")
    return [
        (event.kind, event.step, hour_of(event.wall_ns), event.fields.get("global_norm"))
        for event in read_log(path, READERS)
    ]


def hour_of(wall_ns: int | None) -> int | None:
    return None if wall_ns is None else wall_ns // 10**9 // 3600 % 24


def test_a_record_behind_half_a_line_has_its_own_time_and_lends_it_nothing(tmp_path: Path) -> None:
    path = tmp_path / "info.log"
    new = ("train.step", 1, 2, 99.0)
    assert events_of(path, OLD) == [("train.step", 3, 1, 12.345)]
    prefix, loss, norm = OLD.index("[mindformers"), OLD.index(", per_step"), OLD.index(".345")
    assert events_of(path, OLD[:prefix] + NEW) == [new]
    assert events_of(path, OLD[:loss] + NEW) == [new]
    assert events_of(path, OLD[: loss + 4] + NEW) == [("train.step", 3, 1, None), new]
    assert events_of(path, OLD[:norm] + NEW) == [("train.step", 3, 1, None), new]


@pytest.mark.parametrize(
    "before",
    ["\x1b[32m", "[1,3]<stdout>:", "[rank3]: ", "\r 40%|####      | 4/10", "finish rename, ra", "\0\0", "\ufeff"],
)
def test_what_stands_before_a_record_is_none_of_it(tmp_path: Path, before: str) -> None:
    path = tmp_path / "a.log"
    assert events_of(path, before + NEW) == [("train.step", 1, 2, 99.0)]
    path.write_bytes(before.encode() + RENAMED)
    (event,) = read_log(path, READERS)
    assert (event.kind, event.rank, hour_of(event.wall_ns)) == ("ttp.renamed", 1, 1)


def test_records_in_one_line_are_each_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(
        RENAMED[:-1] + RENAMED[:-1].replace(b"rank:1", b"rank:12") + b"\nepoch: 1 step: 7, loss is " + RENAMED
    )
    assert [(event.line, event.kind, event.rank) for event in read_log(path, READERS)] == [
        (1, "ttp.renamed", 1),
        (1, "ttp.renamed", 12),
        (2, "ttp.renamed", 1),
    ]
    resumed = "[WARNING] ME(5903:1,M):2026-11-21-06:03:20.673.000 [m.py:1] Resume training after TREError from step 4"
    lost = "[ERROR] DISTRIBUTED(5918,7f,python):2026-11-21-06:03:48.287.665 [a.cc:5] F] The node: 1 is timed out."
    path.write_text(f"{resumed}{lost}\n{lost}{resumed}\n")
    found = [(event.kind, event.step) for event in read_log(path, READERS)]
    assert found == [("tft.resumed", 4), ("cluster.node_lost", None), ("cluster.node_lost", None), ("tft.resumed", 4)]


def test_a_record_that_quotes_another_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    quoted = "[ERROR] HCCL(11262,python3):2023-01-31-03:00:14.192.200 [a.cc:1] fail"
    path.write_text(f"HcclWatchdogThread catch an error: {quoted}, rank id: 3, group name: g\n")
    (event,) = read_log(path, READERS)
    assert (event.kind, event.rank) == ("watchdog.error", 3)


def test_lines_that_msrun_repeats_are_counted_and_are_no_events(tmp_path: Path) -> None:
    path = tmp_path / "msrun.txt"
    path.write_text(
        "logs/worker_1.log:87:RuntimeError: UCEError occurred.\n"
        "logs/scheduler.log:12:[ERROR] DISTRIBUTED(1,7f,python):2026-11-21-06:03:48.287.665 [a.cc:5] F] "
        "The node: 1 is timed out.\nlogs/worker_1.log-88-epoch: 1 step: 1, loss is 0.5\n"
    )
    scan = LogScan()
    assert list(read_log(path, READERS, scan=scan)) == []
    assert (scan.lines, scan.events, scan.unknown) == (3, 0, 3)


@pytest.mark.parametrize("path", ["log", "run[1]/log", "[a] b/log"])
def test_the_directory_of_a_log_may_have_brackets(tmp_path: Path, path: str) -> None:
    assert events_of(tmp_path / "a.log", NEW.replace("/job/log", f"/job/{path}")) == [("train.step", 1, 2, 99.0)]


@given(line=st.text(max_size=300))
def test_the_parts_of_a_line_are_the_line(line: str) -> None:
    assert "".join(split_records(line + OLD + line + NEW)) == line + OLD + line + NEW
    assert len(split_records(OLD)) == 1


def test_a_reader_of_another_package_is_used_like_the_built_in_ones(tmp_path: Path) -> None:
    class Mine(LogReader):
        name = "mine"

        def recognises(self, first_lines: Sequence[str]) -> bool:
            return first_lines[:1] == ["mine"]

        def read(self, line: str) -> LogEvent | None:
            return LogEvent("mine.line") if line == "mine" else None

    path = tmp_path / "a.log"
    path.write_text("mine\nother\n\n")
    scan = LogScan()
    events = list(read_log(path, [*READERS, Mine()], scan=scan))
    assert [(event.kind, event.source) for event in events] == [("mine.line", f"{path}:1")]
    assert (scan.lines, scan.events, scan.unknown, scan.samples) == (3, 1, 1, [(2, "other")])


def test_a_line_over_the_limit_is_cut_and_counted_and_the_next_ones_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * (3 * CHUNK) + b"\n" + RENAMED + b"y" * 70_000 + b"\n" + RENAMED)
    scan = LogScan()
    assert [event.line for event in read_log(path, READERS, scan=scan)] == [2, 4]
    assert (scan.cut, scan.lines, scan.torn) == (2, 4, False)


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    with path.open("wb") as stream:
        for _ in range(20):
            stream.write(b"z" * (2 * CHUNK) + b"\n" + RENAMED)
    tracemalloc.start()
    try:
        found = sum(1 for _ in read_log(path, READERS))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == 20
    assert peak < 6 * CHUNK < path.stat().st_size


def test_lines_stay_whole_when_a_chunk_ends_inside_one(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    count = 2 * CHUNK // len(RENAMED) + 10
    path.write_bytes(RENAMED * count)
    assert [event.line for event in read_log(path, READERS)] == list(range(1, count + 1))


def test_a_cut_line_keeps_its_beginning() -> None:
    splitter = LineSplitter(limit=40)
    assert splitter.feed(b"x" * 100) == []
    assert splitter.feed(b"y" * 100 + b"\r\nnext\r\nto") == ["x" * 40, "next"]
    assert (splitter.lines, splitter.cut, splitter.torn) == (2, 1, True)


@given(content=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_the_chunks_in_which_bytes_arrive_make_no_difference(content: bytes, cuts: list[int]) -> None:
    whole, parts = LineSplitter(limit=40), LineSplitter(limit=40)
    expected = whole.feed(content)
    edges = [0, *sorted(cut for cut in cuts if cut <= len(content)), len(content)]
    got = [line for begin, end in pairwise(edges) for line in parts.feed(content[begin:end])]
    assert got == expected
    assert (parts.lines, parts.cut, parts.torn) == (whole.lines, whole.cut, whole.torn)


@given(line=st.text(max_size=300))
def test_no_text_makes_a_reader_fail(line: str) -> None:
    prefixes = ("", "2026-11-21 01:32:19.903248 1 info [1][TTP a.cpp:1] ", "[ERROR] ME(1:1,x):2026-11-21-06:03:20.1.1 ")
    for prefix in prefixes:
        for reader in READERS:
            assert isinstance(reader.read(prefix + line), LogEvent | None)
