"""The runs in progress as the live page is told of them: each while its harness lives, and then as it has ended."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from chaos.base.file_lock import FileLock
from chaos.live.words import STAGES
from chaos.serve import live, page
from chaos.serve.live import LiveRuns
from chaos.serve.runs import RunDirectories
from tests.unit.serve.conftest import RUN, Get


class Time:
    """A clock that the test moves."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


Own = Callable[[str], FileLock]


@pytest.fixture
def own(reports: Path) -> Iterator[Own]:
    """Make a run, unless it is there, and own it as its harness does."""
    locks: list[FileLock] = []

    def own(name: str) -> FileLock:
        if not (reports / name).exists():
            shutil.copytree(reports / RUN, reports / name)
        lock = FileLock.try_acquire(reports / name / ".lock")
        assert lock is not None
        locks.append(lock)
        return lock

    yield own
    for lock in locks:
        lock.release()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def look(reports: Path, clock: Time) -> Callable[[], dict[str, Any]]:
    """Look at the runs again, later."""
    runs = LiveRuns(RunDirectories(reports), clock)

    def look() -> dict[str, Any]:
        clock.seconds += 10
        document: dict[str, Any] = json.loads(runs.document())
        return document

    return look


def names(states: list[dict[str, Any]]) -> list[str]:
    return [state["link"] for state in states]


def test_a_run_is_in_progress_while_its_harness_lives_and_ended_afterwards(
    own: Own, look: Callable[[], dict[str, Any]]
) -> None:
    assert look()["runs"] == []
    lock = own(RUN)
    assert names(look()["runs"]) == [RUN]
    lock.release()
    after = look()
    assert (after["runs"], names(after["ended"])) == ([], [RUN])
    assert after["ended"][0]["verdict"] == "pass"
    own(RUN)
    again = look()
    assert (names(again["runs"]), again["ended"]) == ([RUN], [])


def test_more_runs_than_are_followed_are_counted(
    own: Own, look: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_FOLLOWED", 2)
    for number in range(3):
        own(f"{RUN[:-1]}{number}")
        document = look()
    assert (len(document["runs"]), document["more"], document["ended"]) == (2, 1, [])


def test_only_the_last_runs_that_ended_are_kept(
    own: Own, look: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_ENDED", 1)
    for number in range(2):
        lock = own(f"{RUN[:-1]}{number}")
        look()
        lock.release()
        ended = look()["ended"]
    assert names(ended) == [f"{RUN[:-1]}1"]


def test_a_run_that_is_gone_is_not_shown(own: Own, look: Callable[[], dict[str, Any]], reports: Path) -> None:
    own(RUN)
    look()
    shutil.rmtree(reports / RUN)
    assert (look()["runs"], look()["ended"]) == ([], [])


def test_of_very_many_ranks_those_are_told_that_stand_out(
    own: Own, look: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own(RUN)
    assert len(look()["runs"][0]["rank"]) == 4
    monkeypatch.setattr(live, "MOST_RANKS", 3)
    (state,) = look()["runs"]
    assert state["ranks"] == 4 and len(state["rank"]) <= 3
    assert not {rank["state"] for rank in state["rank"]} & live._ORDINARY


def test_many_readers_cost_one_look(own: Own, reports: Path, clock: Time) -> None:
    own(RUN)
    looks: list[int] = []

    def now() -> int:
        looks.append(1)
        return 0

    runs = LiveRuns(RunDirectories(reports), clock, now)
    clock.seconds = 10
    assert runs.document() == runs.document()
    assert len(looks) == 1


def test_a_look_rests_ten_times_as_long_as_it_takes(own: Own, reports: Path, clock: Time) -> None:
    own(RUN)
    looks: list[float] = []

    def now() -> int:
        looks.append(clock.seconds)
        clock.seconds += 2
        return 0

    runs = LiveRuns(RunDirectories(reports), clock, now)
    for clock.seconds in (10, 31, 32):
        runs.document()
    assert looks == [10, 32]


def test_the_index_waits_for_no_look_at_a_run(own: Own, reports: Path) -> None:
    own(RUN)
    looking, go_on = threading.Event(), threading.Event()

    def now() -> int:
        looking.set()
        go_on.wait()
        return 0

    runs = LiveRuns(RunDirectories(reports), now=now)
    with ThreadPoolExecutor(2) as pool:
        document = pool.submit(runs.document)
        try:
            looking.wait()
            assert pool.submit(runs.in_progress).result(60) == 1
        finally:
            go_on.set()
        assert json.loads(document.result())["runs"]


def test_the_page_has_a_sign_for_each_stage_and_takes_its_words_from_the_state() -> None:
    script = (Path(page.__file__).parent / "assets" / "js" / "words.js").read_text()
    signs = script.partition("const STAGES = {")[2].partition("}")[0]
    assert {name.strip('"') for name in re.findall(r'^ *("[^"]+"|\w+):', signs, re.MULTILINE)} == set(STAGES)
    assert not [words for stage, words in STAGES.items() if words != stage and words in script]


def test_the_page_and_its_data_are_below_the_token(get: Get, own: Own) -> None:
    assert b"<title>Live</title>" in get("live/").body
    policy = dict(get("live/").headers())["Content-Security-Policy"]
    assert "connect-src 'self'" in policy and "unsafe" not in policy
    assert get("live").more["Location"] == "live/"
    first = get("live/state.json")
    assert json.loads(first.body)["runs"] == [] and first.tag
    assert get("live/state.json", known=first.tag).status == 304
