"""A run has one owner, and none when its owner has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.base.clock import Clock, SystemClock
from chaos.base.file_lock import FileLock
from chaos.machine.linux.process import identify
from chaos.store.ownership import LOCK_NAME, RunIsLive, RunLock, is_live, read_owner

HARNESS = """
import sys
from pathlib import Path
from chaos.store.ownership import RunLock
lock = RunLock.acquire(Path(sys.argv[1]))
print("owned", flush=True)
sys.stdin.read()
"""


def test_a_run_is_live_while_its_lock_is_held(tmp_path: Path) -> None:
    assert not is_live(tmp_path)
    with RunLock.acquire(tmp_path):
        assert is_live(tmp_path)
        assert is_live(tmp_path), "looking does not change it"
        assert read_owner(tmp_path) == identify(os.getpid())
        with pytest.raises(RunIsLive, match=f"owned by a live harness .process {os.getpid()} "):
            RunLock.acquire(tmp_path)
        assert read_owner(tmp_path) == identify(os.getpid())
    assert not is_live(tmp_path)
    RunLock.acquire(tmp_path).release()


def test_sigkill_of_the_owner_ends_its_ownership(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HARNESS, str(tmp_path)]
    harness = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert harness.stdout is not None
        assert harness.stdout.readline() == "owned\n"
        with pytest.raises(RunIsLive) as caught:
            RunLock.acquire(tmp_path)
        assert caught.value.owner is not None
        assert caught.value.owner.pid == harness.pid
    finally:
        harness.kill()
        harness.communicate()
    assert not is_live(tmp_path)
    with RunLock.acquire(tmp_path):
        assert read_owner(tmp_path) == identify(os.getpid())


@pytest.mark.parametrize("content", ["", "garbage", "[1]", '{"pid": 1, "start_time": 2, "boot": "earlier"}'])
def test_a_lock_is_respected_after_a_wait_whoever_its_owner_says_it_is(
    tmp_path: Path, clock: Clock, content: str
) -> None:
    with FileLock.try_acquire(tmp_path / LOCK_NAME) or pytest.fail("not locked") as lock:
        lock.write(content)
        began = clock.mono()
        with pytest.raises(RunIsLive):
            RunLock.acquire(tmp_path, clock=clock)
        assert clock.mono() - began >= 5_000_000_000


def test_a_lock_that_is_let_go_meanwhile_is_had(tmp_path: Path) -> None:
    held = FileLock.try_acquire(tmp_path / LOCK_NAME)
    assert held is not None
    release = held.release

    class Releasing(SystemClock):
        def sleep(self, seconds: float) -> None:
            release()

    RunLock.acquire(tmp_path, clock=Releasing()).release()


def test_a_lock_on_a_file_that_lost_its_name_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    opened = os.open

    def open_and_lose(*arguments: object, **more: object) -> int:
        descriptor = opened(*arguments, **more)  # type: ignore[arg-type]
        path.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    assert FileLock.try_acquire(path) is None


def test_the_lock_is_not_inherited_by_a_job(tmp_path: Path) -> None:
    lock = RunLock.acquire(tmp_path)
    child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    try:
        lock.release()
        assert not is_live(tmp_path)
    finally:
        child.kill()
        child.wait()


def test_the_owner_is_readable_for_people(tmp_path: Path) -> None:
    with RunLock.acquire(tmp_path):
        record = json.loads((tmp_path / LOCK_NAME).read_text())
    assert set(record) == {"pid", "start_time", "boot"}
    (tmp_path / LOCK_NAME).unlink()
    assert read_owner(tmp_path) is None


def test_a_link_is_not_taken_for_a_lock(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        RunLock.acquire(tmp_path)
    assert not (tmp_path / "target").exists()
