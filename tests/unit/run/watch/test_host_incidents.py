"""A harness that was stopped notices it by its clock, and says so in the history."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriteError, HistoryWriter
from chaos.run.watch.cpu_starvation import Waited
from chaos.run.watch.host_incidents import (
    LOOK_SECONDS,
    LOW_BYTES,
    STOPPED_SECONDS,
    WAITED_LOOKS,
    HostIncidents,
    noticing_incidents,
)
from chaos.run.watch.own_times import Spent

PLENTY = 1 << 40


def nobody_waited() -> None:
    return None


@pytest.fixture
def history(tmp_path: Path) -> Iterator[HistoryWriter]:
    with HistoryWriter(tmp_path / "harness.jsonl", writer="harness", run="r", clock=SYSTEM_CLOCK) as writer:
        yield writer


def test_a_look_that_comes_late_is_recorded_with_its_time(history: HistoryWriter, clock: Clock, tmp_path: Path) -> None:
    incidents = HostIncidents(history, "train", clock, lambda: PLENTY, nobody_waited)
    for seconds in (LOOK_SECONDS, STOPPED_SECONDS - 0.1, 60.0, LOOK_SECONDS):
        clock.sleep(seconds)
        incidents.look()
    (stopped,) = read_history(tmp_path).select("harness.stopped")
    assert (stopped.attempt, stopped.data["seconds"]) == ("train", 60.0)
    assert stopped.data["until"] - stopped.data["since"] >= 60e9


def test_a_stop_at_the_very_end_is_noticed_too(history: HistoryWriter, clock: Clock, tmp_path: Path) -> None:
    with noticing_incidents(history, "resume", clock, tmp_path, "token"):
        clock.sleep(50)
    assert [event.attempt for event in read_history(tmp_path).select("harness.stopped")] == ["resume"]


def test_a_stop_between_two_launches_is_noticed_too(history: HistoryWriter, clock: Clock, tmp_path: Path) -> None:
    with noticing_incidents(history, "train", clock, tmp_path, "token") as incidents:
        incidents.attempt = "resume"
        clock.sleep(61)
    (stopped,) = read_history(tmp_path).select("harness.stopped")
    assert (stopped.attempt, stopped.data["seconds"] >= 61) == ("resume", True)


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("between", "spent", "event", "seconds"),
    [
        (5.0, Spent(waited=5 * SECOND), "harness.starved", 5.0),
        (5.0, Spent(waited=9 * SECOND), "harness.starved", 5.0),  # several threads waited at once
        (5.0, Spent(waited=2 * SECOND), "harness.stopped", 5.0),
        (5.0, Spent(waited=2 * SECOND, stolen=SECOND), "harness.starved", 3.0),
        (5.0, Spent(waited=SECOND, ran=2 * SECOND), "harness.starved", 1.0),
        (60.0, Spent(ran=SECOND, waited=SECOND), "harness.stopped", 60.0),
        (3.1, Spent(waited=SECOND // 5), "harness.stopped", 3.1),
        (3.1, Spent(waited=2 * SECOND), "harness.starved", 2.0),
        (2.9, Spent(), None, 0.0),
        (LOOK_SECONDS, Spent(suspended=40 * SECOND), "harness.stopped", 40.0),
        (LOOK_SECONDS, Spent(suspended=SECOND), None, 0.0),
    ],
)
def test_a_late_look_is_a_stop_where_the_kernel_has_counted_neither_running_nor_waiting(
    history: HistoryWriter,
    clock: Clock,
    tmp_path: Path,
    between: float,
    spent: Spent,
    event: str | None,
    seconds: float,
) -> None:
    incidents = HostIncidents(history, "train", clock, lambda: PLENTY, nobody_waited, lambda: spent)
    since = clock.mono()
    clock.sleep(between)
    incidents.look()
    entries = [fact for fact in read_history(tmp_path).events if fact.event.startswith("harness.")]
    assert [(fact.event, fact.data["seconds"]) for fact in entries] == ([] if event is None else [(event, seconds)])
    assert all(
        fact.data["since"] <= since and fact.data["until"] - fact.data["since"] >= between * 1e9 for fact in entries
    )


def test_a_full_disk_ends_no_watch(history: HistoryWriter, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def full(event: str, **_: object) -> None:
        seen.append(event)
        raise HistoryWriteError("disk full")

    incidents = HostIncidents(history, "train", clock, lambda: PLENTY, nobody_waited)
    monkeypatch.setattr(history, "record", full)
    clock.sleep(60)
    incidents.look()
    assert seen == ["harness.stopped"]


def test_a_disk_that_is_nearly_full_is_recorded_once(history: HistoryWriter, clock: Clock, tmp_path: Path) -> None:
    room = iter([PLENTY, LOW_BYTES, LOW_BYTES - 1])
    incidents = HostIncidents(history, "train", clock, lambda: next(room), nobody_waited)
    for _ in range(5):
        incidents.look()
    (low,) = read_history(tmp_path).select("disk.low")
    assert (low.attempt, low.data["free"]) == ("train", LOW_BYTES - 1)


def test_waiting_is_recorded_with_its_time_and_whose_it_was(
    history: HistoryWriter, clock: Clock, tmp_path: Path
) -> None:
    entries = iter([Waited(5, 9, 0.25, "rank 3 (process 50)"), None])
    incidents = HostIncidents(history, "train", clock, lambda: PLENTY, lambda: next(entries))
    for _ in range(2 * WAITED_LOOKS):
        incidents.look()
    (waited,) = read_history(tmp_path).select("job.starved", attempt="train")
    assert waited.data == {"since": 5, "until": 9, "seconds": 0.25, "process": "rank 3 (process 50)"}


def test_a_file_system_that_tells_no_sizes_is_not_taken_for_a_full_one(
    history: HistoryWriter, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.statvfs", lambda path: os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255)))
    with noticing_incidents(history, "train", clock, tmp_path, "token"):
        clock.sleep(0.1)
    assert not read_history(tmp_path).select("disk.low")
