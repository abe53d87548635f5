"""A harness that was stopped notices it by its clock, and says so in the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.history.clock import SYSTEM_CLOCK, Clock
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriteError, HistoryWriter
from chaos.run.heartbeat import BEAT_SECONDS, LOW_BYTES, STOPPED_SECONDS, Heartbeat, beating

PLENTY = 1 << 40


@pytest.fixture
def history(tmp_path: Path) -> Iterator[HistoryWriter]:
    with HistoryWriter(tmp_path / "harness.jsonl", writer="harness", run="r", clock=SYSTEM_CLOCK) as writer:
        yield writer


def test_a_beat_that_comes_late_is_recorded_with_its_time(history: HistoryWriter, clock: Clock, tmp_path: Path) -> None:
    heart = Heartbeat(history, "train", clock, lambda: PLENTY)
    for seconds in (BEAT_SECONDS, STOPPED_SECONDS - 0.1, 60.0, BEAT_SECONDS):
        clock.sleep(seconds)
        heart.beat()
    (stopped,) = read_history(tmp_path).select("harness.stopped")
    assert (stopped.attempt, stopped.data["seconds"]) == ("train", 60.0)
    assert stopped.data["until"] - stopped.data["since"] >= 60e9


def test_a_stop_at_the_very_end_is_noticed_too(history: HistoryWriter, clock: Clock, tmp_path: Path) -> None:
    with beating(history, "resume", clock, tmp_path):
        clock.sleep(50)
    assert [one.attempt for one in read_history(tmp_path).select("harness.stopped")] == ["resume"]


def test_a_full_disk_stops_no_heart(history: HistoryWriter, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def full(event: str, **_: object) -> None:
        seen.append(event)
        raise HistoryWriteError("disk full")

    heart = Heartbeat(history, "train", clock, lambda: PLENTY)
    monkeypatch.setattr(history, "record", full)
    clock.sleep(60)
    heart.beat()
    assert seen == ["harness.stopped"]


def test_a_disk_that_is_nearly_full_is_recorded_once(history: HistoryWriter, clock: Clock, tmp_path: Path) -> None:
    room = iter([PLENTY, LOW_BYTES, LOW_BYTES - 1])
    heart = Heartbeat(history, "train", clock, lambda: next(room))
    for _ in range(5):
        heart.beat()
    (low,) = read_history(tmp_path).select("disk.low")
    assert (low.attempt, low.data["free"]) == ("train", LOW_BYTES - 1)
