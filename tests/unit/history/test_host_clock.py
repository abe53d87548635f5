"""Histories of several hosts become one: the error that is stated holds, and what is further apart keeps its order."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.history.host_clock import DRIFT_PPM, HostClock, Offset, measure_offset
from chaos.history.reader import read_history

SECOND = 1_000_000_000


class Times:
    """A clock that shows the given times, one after the other."""

    def __init__(self, *times: int) -> None:
        self.left = list(times)

    def mono(self) -> int:
        return self.left.pop(0)

    def wall(self) -> int:
        return 0

    def sleep(self, seconds: float) -> None:
        raise AssertionError


def test_the_shortest_round_trip_counts_and_half_of_it_is_the_error() -> None:
    clock = Times(0, 100, 1000, 1010, 2000, 2040)
    answers = iter((5050, 6007, 7020))
    assert measure_offset(lambda: next(answers), clock, trips=3) == Offset(1005, 5002, 5)


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=1, max_size=8),
)
def test_the_truth_is_never_further_away_than_the_error(ahead: int, trips: list[tuple[int, int]]) -> None:
    """Whatever the way there and the way back take, alike or not."""
    times, answers, now = [], [], SECOND
    for there, back in trips:
        times += [now, now + there + back]
        answers.append(now + there + ahead)
        now += there + back + 1000
    asked = iter(answers)
    measured = measure_offset(lambda: next(asked), Times(*times), trips=len(trips))
    assert abs(measured.offset - ahead) <= measured.error
    assert measured.error <= min(there + back + 1 for there, back in trips)


def test_a_clock_that_runs_as_slow_as_may_be_is_placed_within_its_error_however_far_away() -> None:
    true = 600 * SECOND
    placed = HostClock([Offset(0, 0, 0)]).place(true - true * DRIFT_PPM // 1_000_000)
    assert true - placed.mono == placed.error


@given(
    st.integers(-(10**14), 10**14),
    st.integers(-DRIFT_PPM, DRIFT_PPM),
    st.lists(st.integers(0, 600 * SECOND), min_size=1, max_size=6, unique=True),
    st.integers(0, 10**6),
    st.lists(st.integers(-60 * SECOND, 660 * SECOND), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_a_time_is_placed_within_its_error(
    ahead: int, ppm: int, measured_at: list[int], error: int, moments: list[int], random: Any
) -> None:
    """A clock that runs wrong evenly, measured now and then, each time as wrongly as the error allows."""

    def shown(true: int) -> int:
        return true + ahead + true * ppm // 1_000_000

    def off(true: int) -> Offset:
        return Offset(true, shown(true) - true + random.randint(-error, error), error)

    clock = HostClock([off(one) for one in measured_at])
    for moment in moments:
        placed = clock.place(shown(moment))
        # What is measured is at the wrong moment, too, by as much as the clock is wrong there: one nanosecond in 2000.
        slack = 2 + error // 1000
        assert abs(placed.mono - moment) <= placed.error + slack


def test_the_order_of_one_clock_is_kept() -> None:
    clock = HostClock([Offset(0, 5_000_000, 9000), Offset(SECOND, 4_000_000, 9000), Offset(2 * SECOND, 4_500_000, 9)])
    placed = [clock.place(one).mono for one in range(-SECOND, 3 * SECOND, 1_000_003)]
    assert placed == sorted(placed)


def test_the_same_boot_is_the_same_clock_unless_it_is_measured_to_be_another() -> None:
    near, far = Offset(0, 400, 500), Offset(0, 400 * SECOND, 500)
    assert HostClock([near], same_boot=True).place(77).error == 0
    assert HostClock([near], same_boot=True).place(77).mono == 77
    assert not HostClock([near]).same
    assert HostClock([far], same_boot=True).place(400 * SECOND).mono == 0


@given(
    st.lists(
        st.tuples(st.integers(-(10**13), 10**13), st.integers(0, 10**6), st.integers(-DRIFT_PPM, DRIFT_PPM)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60 * SECOND)), max_size=40),
    st.randoms(use_true_random=False),
)
def test_one_history_is_made_of_several_hosts(
    hosts: list[tuple[int, int, int]], happened: list[tuple[int, int]], random: Any
) -> None:
    """Nothing is lost, every host's own order is kept, and no two events are in an order that is surely wrong."""
    base = 10**14

    def shown(host: int, true: int) -> int:
        ahead, _, ppm = hosts[host]
        return base + true + ahead + true * ppm // 1_000_000

    def opening(writer: str, host: str, mono: int) -> dict[str, Any]:
        return {"event": "writer.start", "mono": mono, "writer": writer, "host": host, "boot": host}

    def clock(host: int, true: int) -> dict[str, Any]:
        error = hosts[host][1]
        offset = shown(host, true) - (base + true) + random.randint(-error, error)
        place = {"host": f"h{host}", "boot": f"h{host}", "at": base + true, "offset": offset, "error": error}
        return {"event": "clock", "mono": base + true, **place}

    files = {"harness": [opening("harness", "own", base)]}
    files["harness"] += [clock(host, true) for true in (0, 60 * SECOND) for host in range(len(hosts))]
    for host in range(len(hosts)):
        own = sorted(true for which, true in happened if which % len(hosts) == host)
        files[f"h{host}"] = [opening("agent", f"h{host}", shown(host, 0))]
        files[f"h{host}"] += [{"event": "x", "mono": shown(host, true), "true": base + true} for true in own]
    with TemporaryDirectory() as directory:
        for name, records in files.items():
            lines = [json.dumps({"seq": seq, "wall": 0, **record}) for seq, record in enumerate(records)]
            Path(directory, f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        history = read_history(Path(directory))
    events = history.select("x")
    assert len(events) == len(happened)
    for event in events:
        assert abs(event.mono - event.data["true"]) <= event.error + 2
    for before, after in pairwise(events):
        assert before.mono <= after.mono
        assert not (before.surely_before(after) and before.data["true"] > after.data["true"] + 2)
        if before.clock == after.clock:
            assert before.data["true"] <= after.data["true"]


@pytest.mark.parametrize(
    "spoilt",
    [{"offset": "1"}, {"error": -1}, {"at": None}, {"offset": 2**70}, {"boot": 7}],
)
def test_a_measurement_that_says_nothing_is_none(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    clock = {"event": "clock", "mono": 5, "host": "h2", "boot": "b2", "at": 5, "offset": 1, "error": 1, **spoilt}
    start = {"event": "writer.start", "mono": 1, "writer": "harness", "host": "h1", "boot": "b1"}
    text = "".join(json.dumps({"seq": seq, "wall": 0, **one}) + "\n" for seq, one in enumerate((start, clock)))
    (tmp_path / "harness.jsonl").write_text(text)
    history = read_history(tmp_path)
    assert history.clocks == {}
    assert len(history.events) == 2
