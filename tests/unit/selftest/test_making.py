"""What a killed selftest has left is put back before its place is removed, and stays where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.file_lock import FileLock
from chaos.base.wait import wait_for
from chaos.history.ledger import UndoStep
from chaos.machine.job.processes import find_run_processes
from chaos.selftest.base import cache_directory
from chaos.selftest.workdirs import LIVE, place_to_make
from chaos.store.directory import create_run, make_private_directory


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return cache_directory({"XDG_CACHE_HOME": str(tmp_path)})


@pytest.fixture
def left(cache: Path) -> Path:
    """The place of a selftest that is gone."""
    path = cache / ".making-left"
    path.mkdir()
    return path


class Killed:
    """A run whose harness was killed, with a rank in a session of its own and a private directory."""

    def __init__(self, reports: Path) -> None:
        owned = create_run(reports, "live-ttp")
        self.token = owned.token
        self.private = make_private_directory(owned.ledger, owned.token)
        owned.ledger.record(UndoStep("job", None, "end-job", {"run": owned.token}, "end every process of the job"))
        self.rank = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"],
            env={**os.environ, "CHAOS_RUN": owned.token},
            start_new_session=True,
        )
        wait_for("the rank", lambda: find_run_processes(owned.token), seconds=60)
        owned.lock.release()  # what the kernel does when the harness is killed


@pytest.fixture(params=["", LIVE], ids=["good run", "live run"])
def killed(left: Path, request: pytest.FixtureRequest) -> Iterator[Killed]:
    run = Killed(left / request.param)
    yield run
    run.rank.kill()
    run.rank.wait()


def test_the_runs_of_a_killed_selftest_are_healed_before_they_are_removed(
    cache: Path, left: Path, killed: Killed
) -> None:
    notes: list[str] = []
    with place_to_make(cache, notes.append) as making:
        assert making.is_dir() and not left.exists()
        assert find_run_processes(killed.token) == [] and not killed.private.exists()
    assert killed.rank.wait(60) != 0
    assert not making.exists() and notes == []


def test_what_cannot_be_put_back_stays_with_its_record_and_is_told(cache: Path, left: Path) -> None:
    owned = create_run(left, "live-ttp")
    owned.ledger.record(UndoStep("x", None, "no-such-action", {}, "nobody knows how"))
    owned.lock.release()
    notes: list[str] = []
    with place_to_make(cache, notes.append):
        pass
    assert (owned.path / "undo.jsonl").exists()
    (told,) = notes
    assert str(owned.path) in told and f"chaos heal --reports {left}" in told


def test_a_place_in_which_a_run_goes_on_stays(cache: Path, left: Path) -> None:
    owned = create_run(left, "live-ttp")
    with owned.lock, place_to_make(cache, print):
        assert owned.path.is_dir()
    with place_to_make(cache, print):
        assert not left.exists()


def test_a_place_that_another_selftest_works_in_is_not_touched(cache: Path, left: Path) -> None:
    lock = FileLock.try_acquire(left / ".owner")
    assert lock is not None
    with lock, place_to_make(cache, print) as first, place_to_make(cache, print):
        assert left.is_dir() and first.is_dir()


def test_what_is_made_at_the_end_of_a_selftest_is_healed_too(cache: Path) -> None:
    with place_to_make(cache, print) as making:
        run = Killed(making)
    try:
        assert not making.exists() and find_run_processes(run.token) == []
    finally:
        run.rank.kill()
        run.rank.wait()
