"""A process that waits for cores is known to others until it has them, and for no longer than it lives."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from chaos.base.clock import Clock
from chaos.base.wait import DeadlineExpired, Patience
from chaos.live.holders import waits_for_cores
from chaos.machine.lease_holder import this_holder
from chaos.machine.lease_waiters import Waiters
from chaos.machine.leases import Leases


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "leases"


def test_who_waits_is_listed_with_its_deadline_and_the_holders_until_the_wait_is_over(
    directory: Path, clock: Clock
) -> None:
    leases = Leases(directory, cores=range(2))
    seen: list[int] = []

    def look(reason: str) -> None:
        (wait,) = waits_for_cores(leases, now=this_holder().since + 5.0)
        assert (wait.pid, wait.limit) == (os.getpid(), 60.0)
        assert 5.0 <= wait.elapsed < 3600.0
        assert [(holder.cores, holder.pid) for holder in wait.holders] == [("0-1", os.getpid())]
        seen.append(wait.pid)

    with leases.take_cores(2, wait=Patience(60)):
        with pytest.raises(DeadlineExpired):
            Leases(directory, cores=range(2)).take_cores(1, wait=Patience(1, clock), blocked=look, limit=60.0)
        assert waits_for_cores(leases) == ()
    assert len(seen) == 1
    with leases.take_cores(1, wait=Patience(60), blocked=look, limit=60.0):
        assert len(seen) == 1
    assert not list(directory.glob("*-wait-*"))


def test_without_a_place_for_the_record_the_wait_goes_on(directory: Path) -> None:
    Waiters(directory / "nowhere", "core").add(60.0)
    assert Waiters(directory / "nowhere", "core").listed() == []


@pytest.mark.parametrize(
    "record",
    ["", "[]", "{}", json.dumps(asdict(this_holder())), json.dumps({**asdict(this_holder()), "limit": 1, "boot": "x"})],
)
def test_a_record_that_names_no_living_process_counts_for_nothing_and_the_next_wait_removes_it(
    directory: Path, record: str
) -> None:
    directory.mkdir()
    (directory / "core-wait-1.json").write_text(record)
    waiters = Waiters(directory, "core")
    assert waiters.listed() == []
    waiters.add(None)
    (waiter,) = waiters.listed()
    assert (waiter.process.pid, waiter.limit) == (os.getpid(), None)
    assert [path.name for path in directory.iterdir()] == [f"core-wait-{os.getpid()}.json"]
    waiters.remove()
    assert waiters.listed() == []


@pytest.mark.parametrize("limit", ["60", True, float("inf"), float("nan"), None])
def test_a_deadline_that_is_no_number_of_seconds_is_none(directory: Path, limit: object) -> None:
    directory.mkdir()
    (directory / "core-wait-1.json").write_text(json.dumps({**asdict(this_holder()), "limit": limit}))
    (waiter,) = Waiters(directory, "core").listed()
    assert waiter.limit is None
