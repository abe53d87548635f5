"""The runs that go on in a directory are found by their locks, and each harness has one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.live import live_runs
from chaos.live.current import CurrentRuns, is_started_here
from chaos.store.directory import create_run
from tests.kit.plans import plan_named
from tests.unit.live.described import describe

pytestmark = pytest.mark.processes


def test_a_run_goes_on_as_long_as_its_harness_holds_it(tmp_path: Path) -> None:
    first, second = create_run(tmp_path, "one"), create_run(tmp_path, "two")
    (tmp_path / "latest").symlink_to(second.run)
    (tmp_path / "random").mkdir()
    assert set(live_runs(tmp_path)) == {first.path, second.path}
    first.lock.release()
    assert live_runs(tmp_path) == [second.path]
    second.lock.release()
    assert live_runs(tmp_path) == live_runs(tmp_path / "nothing") == []


def test_of_a_harness_its_newest_run_is_shown_until_nobody_looks(tmp_path: Path) -> None:
    run, baseline = create_run(tmp_path, "run"), create_run(tmp_path, "baseline")
    for owned in (run, baseline):
        describe(owned, plan_named("kill-rank"))
    names: list[list[str]] = []
    with run.lock:
        runs = CurrentRuns(
            tmp_path, lambda pid: pid == os.getpid(), lambda states: names.append([state.run for state in states])
        )
        with baseline.lock:
            wait_for("the fault-free run", lambda: [baseline.run] in names, seconds=30)
        wait_for("the run", lambda: names[-1] == [run.run], seconds=30)
        runs.close()
    assert all(len(seen) == 1 for seen in names)


def test_runs_of_others_are_not_shown(tmp_path: Path) -> None:
    seen: list[int] = []
    owned = create_run(tmp_path, "run")
    with owned.lock:
        runs = CurrentRuns(tmp_path, lambda pid: False, lambda states: seen.append(len(states)))
        wait_for("a look", lambda: seen, seconds=30)
        runs.close()
    assert set(seen) == {0}


def test_a_process_is_started_here_also_by_a_shell() -> None:
    program = "import sys; print(__import__('os').getpid(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        ["sh", "-c", '"$0" -c "$1"; true', sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdout is not None
        assert is_started_here(int(shell.stdout.readline()))
        assert is_started_here(shell.pid)
        shell.communicate("")
    assert not is_started_here(os.getppid())
    assert not is_started_here(1)
