"""The files of a history are read once each, whatever they hold, and on one clock."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.record import Record
from chaos.history.tail import TailedFile
from chaos.live.events import NewEvents


def line(event: str, mono: int = 1, **fields: Any) -> bytes:
    frame = {"seq": 0, "mono": mono, "wall": 1_000 + mono, "event": event, "attempt": "train", "rank": None, "pid": 7}
    return json.dumps(frame | fields).encode() + b"\n"


def test_what_an_agent_has_mapped_is_read_as_it_is_written(tmp_path: Path) -> None:
    events = NewEvents(tmp_path)
    record = Record(str(tmp_path), run="r", attempt="train", rank=3)
    write = record.step_writer("step.begin")
    assert [event.event for event in events.read()] == ["writer.start"]
    write(1)
    write(2)
    assert [(event.rank, event.data["step"]) for event in events.read()] == [(3, 1), (3, 2)]
    assert [*events.read()] == []
    record.close()


def test_of_a_digest_only_step_and_loss_are_read(tmp_path: Path) -> None:
    record = Record(str(tmp_path), run="r", attempt="train", rank=0)
    parameters = {f"layer{number}": "0" * 32 for number in range(1_000)}
    record.write("initial", parameters=parameters)
    record.write("digest", cost_us=1.5, step=4, loss="0x1p+1", batch="b", parameters=parameters)
    record.write("digest", step=5, cost_us=1.5, loss="0x1p+2", parameters=parameters)
    events = [*NewEvents(tmp_path).read()]
    assert [event.data for event in events[1:]] == [{"step": 4, "loss": "0x1p+1"}, {"step": 5, "loss": "0x1p+2"}]
    record.close()


@pytest.mark.parametrize("text", [b"\xff\xfe\n", b"[1]\n", b'{"event":"x"}\n', b'{"seq":1e400}\n'])
def test_a_line_that_is_no_event_is_told_and_passed_over(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "harness.jsonl").write_bytes(text + line("run.start"))
    events = NewEvents(tmp_path)
    assert [event.event for event in events.read()] == ["run.start"]
    (problem,) = events.problems
    assert problem.startswith(f"{tmp_path.name}/harness.jsonl: not an event")


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.mkdir()
    os.mkfifo(history / "train-rank_0-1.jsonl")
    (history / "train-rank_1-1.jsonl").symlink_to("/etc/passwd")
    events = NewEvents(history)
    assert [*events.read()] == []
    assert len(events.problems) == 2
    (tmp_path / "elsewhere").symlink_to(history)
    assert [*NewEvents(tmp_path / "elsewhere").read()] == []


def test_times_of_another_host_are_placed_on_the_clock_of_the_harness(tmp_path: Path) -> None:
    start = {"host": "here", "boot": "a", "writer": "harness"}
    measured = line("clock", 100, host="there", boot="b", offset=1_000_000, error=1)
    (tmp_path / "harness.jsonl").write_bytes(line("writer.start", 1, **start) + measured)
    there = line("writer.start", 1_000_150, host="there", boot="b", writer="agent") + line("train.end", 1_000_200)
    (tmp_path / "train-rank_0-1.jsonl").write_bytes(there)
    ends = [event.mono for event in NewEvents(tmp_path).read() if event.event == "train.end"]
    assert ends == [200]


def test_of_a_long_history_a_part_of_each_file_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks late at many ranks has gigabytes of events before it."""
    looks: list[str] = []
    new_lines = TailedFile.new_lines

    def counted(self: TailedFile) -> Iterator[bytes]:
        looks.append("")
        return new_lines(self)

    monkeypatch.setattr(TailedFile, "new_lines", counted)
    for rank in range(2):
        events = [line("step.end", 2 * mono + rank, rank=rank, note="x" * 1_000) for mono in range(3_000)]
        (tmp_path / f"train-rank_{rank}-1.jsonl").write_bytes(b"".join(events))
    reading = NewEvents(tmp_path).read()
    first = next(reading)
    assert (first.rank, len(looks)) == (0, 2), "a part of each file is read, and no more"
    assert [first.mono, *(event.mono for event in reading)] == list(range(6_000))
