"""The reader's promises: it reads what is there, says what is not right and where, and never gives up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.history.jsonl import MAX_LINE
from chaos.history.reader import read_history
from tests.kit.examples import examples


def line(seq: int, mono: int, event: str = "x", **more: Any) -> bytes:
    return json.dumps({"seq": seq, "mono": mono, "wall": mono, "event": event, **more}).encode() + b"\n"


def begin(mono: int = 0, writer: str = "agent", boot: str = "b", wall: int | None = None) -> bytes:
    record = {"seq": 0, "mono": mono, "wall": mono if wall is None else wall, "event": "writer.start"}
    return json.dumps({**record, "writer": writer, "run": "r", "host": "h", "boot": boot}).encode() + b"\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "history").mkdir()
    return tmp_path / "history"


def problems(directory: Path) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in read_history(directory).problems]


def test_files_are_merged_by_the_monotonic_clock(directory: Path) -> None:
    (directory / "a.jsonl").write_bytes(begin(10) + line(1, 40, "late"))
    (directory / "b.jsonl").write_bytes(begin(20) + line(1, 30, "early"))
    (directory / "notes.txt").write_text("not history")
    history = read_history(directory)
    assert [event.mono for event in history.events] == [10, 20, 30, 40]
    assert history.events[3].source == "history/a.jsonl:2"
    assert history.problems == ()


def test_an_event_that_an_earlier_release_recorded_has_the_name_of_today(directory: Path) -> None:
    (directory / "a.jsonl").write_bytes(begin(1) + line(1, 2, "stranger") + line(2, 3, "caller.refused"))
    history = read_history(directory)
    assert [event.mono for event in history.select("caller.refused")] == [2, 3]
    assert history.select("stranger") == []


def test_events_are_found_by_their_fields(directory: Path) -> None:
    (directory / "a.jsonl").write_bytes(
        begin(1)
        + line(1, 2, "step.end", attempt="train", rank=0, pid=5, step=1)
        + line(2, 3, "step.end", attempt="train", rank=1, pid=6, step=1)
        + line(3, 4, "step.end", attempt="resume", rank=0, pid=7, step=2)
    )
    history = read_history(directory)
    assert [event.pid for event in history.select("step.end", rank=0)] == [5, 7]
    assert [event.pid for event in history.select("step.end", step=1, attempt="train", rank=1)] == [6]
    assert [event.pid for event in history.select(pid=7)] == [7]
    assert len(history.select(writer="agent")) == 4
    assert history.select("step.end", missing=None) == []
    first, last = history.first("step.end"), history.last("step.end")
    assert first is not None
    assert last is not None
    assert (first.pid, last.pid) == (5, 7)
    assert history.first("nothing") is None
    assert history.last("nothing") is None


def test_a_torn_last_line_is_noted_and_the_rest_is_read(directory: Path) -> None:
    (directory / "a.jsonl").write_bytes(begin() + line(1, 1) + line(2, 2)[:-1])
    assert len(read_history(directory).events) == 2
    assert problems(directory) == [("torn-last-line", "history/a.jsonl:3")]


@pytest.mark.parametrize(
    "bad",
    [
        b"not json",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"seq":1,"mono":"1","wall":1,"event":"x"}',
        b'{"seq":true,"mono":1,"wall":1,"event":"x"}',
        b'{"seq":1,"mono":-1,"wall":1,"event":"x"}',
        b'{"seq":1,"mono":1,"wall":1,"event":7}',
        b'{"seq":1,"mono":1,"wall":1,"event":"x","rank":"0"}',
        b'{"seq":1,"mono":1,"wall":1,"event":"x","attempt":0}',
        b'{"seq":1,"mono":1,"wall":1,"event":"x","loss":NaN}',
        b'{"seq":1,"mono":1,"wall":1,"event":"x","loss":1e999}',
        b"[" * 100_000,
        b'{"seq":' + b"1" * 5000 + b"}",
    ],
)
def test_a_garbled_line_is_a_problem_at_its_place(directory: Path, bad: bytes) -> None:
    (directory / "a.jsonl").write_bytes(begin() + bad + b"\n" + line(1, 1))
    assert [event.event for event in read_history(directory).events] == ["writer.start", "x"]
    assert problems(directory) == [("garbled-line", "history/a.jsonl:2")]


def test_a_sequence_gap_is_a_problem(directory: Path) -> None:
    (directory / "a.jsonl").write_bytes(begin() + line(1, 1) + line(3, 3) + line(4, 4))
    assert problems(directory) == [("seq", "history/a.jsonl:3")]


def test_a_clock_that_runs_back_is_a_problem_and_does_not_turn_the_order_round(directory: Path) -> None:
    (directory / "a.jsonl").write_bytes(begin() + line(1, 9, "first") + line(2, 5, "second"))
    assert problems(directory) == [("clock-back", "history/a.jsonl:3")]
    assert [event.event for event in read_history(directory).events] == ["writer.start", "first", "second"]


@pytest.mark.parametrize("content", [b"", b"{"])
def test_a_writer_that_was_ended_before_its_first_line_left_a_torn_one(directory: Path, content: bytes) -> None:
    (directory / "a.jsonl").write_bytes(content)
    assert problems(directory) == [("torn-last-line", "history/a.jsonl:1")]


@pytest.mark.parametrize("content", [line(0, 0), b"garbage\n"])
def test_a_file_that_does_not_begin_with_writer_start_is_a_problem(directory: Path, content: bytes) -> None:
    (directory / "a.jsonl").write_bytes(content)
    assert ("no-writer-start", "history/a.jsonl:1") in problems(directory)


@pytest.mark.parametrize("excess", [1, 2, MAX_LINE, 3 * MAX_LINE])
def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_read(directory: Path, excess: int) -> None:
    long = b'"' + b"x" * (MAX_LINE + excess - 3) + b'"\n'
    assert len(long) == MAX_LINE + excess
    (directory / "a.jsonl").write_bytes(begin() + long + line(1, 1))
    assert problems(directory) == [("line-too-long", "history/a.jsonl:2")]
    assert len(read_history(directory).events) == 2


def test_what_is_not_a_plain_file_is_a_problem(directory: Path, tmp_path: Path) -> None:
    os.mkfifo(directory / "fifo.jsonl")
    (directory / "dir.jsonl").mkdir()
    (tmp_path / "outside").write_bytes(begin())
    (directory / "link.jsonl").symlink_to(tmp_path / "outside")
    assert {kind for kind, _ in problems(directory)} == {"unreadable"}
    assert len(problems(directory)) == 3


def test_no_directory_is_a_problem(tmp_path: Path) -> None:
    assert problems(tmp_path / "history") == [("unreadable", "history")]


def test_events_of_a_later_boot_come_later_although_its_clock_is_behind(directory: Path) -> None:
    (directory / "a.jsonl").write_bytes(begin(900, "harness", "boot1", wall=1000) + line(1, 950, "before"))
    (directory / "heal.jsonl").write_bytes(begin(5, "heal", "boot2", wall=5000) + line(1, 6, "after"))
    names = [event.event for event in read_history(directory).events]
    assert names == ["writer.start", "before", "writer.start", "after"]
    assert problems(directory) == []


@examples(60)
@given(content=st.binary(max_size=400), cut=st.integers(0, 400), at=st.integers(0, 400))
def test_no_content_makes_it_raise(directory: Path, content: bytes, cut: int, at: int) -> None:
    valid = begin() + line(1, 1, rank=0) + line(2, 2, data={"a": [1]})
    (directory / "a.jsonl").write_bytes(valid[:at] + content + valid[at + cut :])
    (directory / "b.jsonl").write_bytes(content)
    history = read_history(directory)
    assert history.select() == list(history.events)
    assert all(problem.where.startswith("history/") and problem.text for problem in history.problems)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
frames = st.dictionaries(
    st.sampled_from(["seq", "mono", "wall", "event", "attempt", "rank", "pid", "writer", "boot"]), json_values
)


@examples(60)
@given(records=st.lists(frames, max_size=5), name=st.sampled_from(["writer.start", "writer.resume", "x"]))
def test_no_json_makes_it_raise(directory: Path, records: list[dict[str, Any]], name: str) -> None:
    text = "".join(json.dumps({"seq": 0, "mono": 1, "wall": 1, "event": name, **record}) + "\n" for record in records)
    (directory / "a.jsonl").write_text(text)
    history = read_history(directory)
    assert len(history.events) + sum(problem.kind == "garbled-line" for problem in history.problems) >= len(
        records
    ) - sum(problem.kind == "torn-line" for problem in history.problems)
