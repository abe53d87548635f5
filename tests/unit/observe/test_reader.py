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

from chaos.observe.lines import LineSplitter
from chaos.observe.log_event import LogEvent
from chaos.observe.reader import CHUNK, LogScan, built_in_readers, choose_reader, read_log

READERS = built_in_readers(timezone.utc)
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


def test_a_reader_of_another_package_is_used_like_the_built_in_ones(tmp_path: Path) -> None:
    class Mine:
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
