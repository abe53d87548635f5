"""A link that is down hangs a collective until its limit, or until the watchdog finds it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

from chaos.plan.parts.recovery_options import WATCHDOG_POLL_SECONDS
from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.device.watchdog import POLL_SECONDS, start_watchdog

SECONDS = 60.0
ARRAY = numpy.ones(3, "float32")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def pair(directory: Path, pool: ThreadPoolExecutor, limit: float) -> list[Communicator]:
    made = [
        Communicator(rank, range(2), str(directory), b"s", limit_seconds=limit, join_seconds=SECONDS, on_refused=print)
        for rank in (0, 1)
    ]
    for joined in [pool.submit(communicator.join) for communicator in made]:
        joined.result(SECONDS)
    return made


def test_a_broken_link_is_seen_by_both_sides_only_after_the_limit(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    ranks = pair(tmp_path, pool, 0.5)
    assert ranks[1].link_error is None
    ranks[1].sever()
    assert ranks[1].link_error is not None
    for future in [pool.submit(one.all_reduce, ARRAY) for one in ranks]:
        with pytest.raises(CommunicationTimeout, match=r"waited 0\.5 s in all-reduce 1"):
            future.result(SECONDS)


def test_the_watchdog_ends_the_collective_long_before_that(
    tmp_path: Path, pool: ThreadPoolExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    ranks = pair(tmp_path, pool, SECONDS)
    failures: list[str] = []

    def fail(text: str) -> None:
        failures.append(text)
        ranks[1].abort()

    thread = start_watchdog(1, 0.01, lambda: ranks[1].link_error, fail)
    ranks[1].sever()
    with pytest.raises(CommunicationAborted):
        pool.submit(ranks[1].all_reduce, ARRAY).result(SECONDS)
    thread.join(SECONDS)
    assert failures == ["error cqe: the link of the parameter plane is down"]
    log = capfd.readouterr().err
    assert f"HcclWatchdogThread catch an error: {failures[0]}, rank id: 1, group name: hccl_world_group" in log
    assert "Watchdog thread got hccl error, try to stop training. rank: 1" in log
    assert "Try to destroy all streams by watch dog thread." in log


def test_plan_and_stand_in_mean_the_same_poll() -> None:
    assert POLL_SECONDS == WATCHDOG_POLL_SECONDS


def test_a_watchdog_without_an_error_says_nothing() -> None:
    asked = threading.Event()

    def error() -> None:
        asked.set()

    def fail(text: str) -> None:
        raise AssertionError(text)

    thread = start_watchdog(0, 0.01, error, fail)
    assert asked.wait(SECONDS)
    assert thread.is_alive() and thread.daemon
