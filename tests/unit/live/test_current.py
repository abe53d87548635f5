"""The runs that go on in a directory are found by their locks, and each harness has one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.live import live_runs
from chaos.live.current import Current, CurrentRuns, is_started_here
from chaos.live.state import CoresWait
from chaos.store.directory import RunDirectory, create_run
from chaos.store.ownership import RunLock
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
            lambda: (tmp_path,),
            lambda pid: pid == os.getpid(),
            lambda current: names.append([state.run for state in current.states]),
        )
        with baseline.lock:
            wait_for("the fault-free run", lambda: [baseline.run] in names, seconds=120)
        wait_for("the run", lambda: names[-1] == [run.run], seconds=120)
        runs.close()
    assert all(len(seen) == 1 for seen in names)


def test_runs_of_others_are_not_shown(tmp_path: Path) -> None:
    seen: list[int] = []
    owned = create_run(tmp_path, "run")
    with owned.lock:
        runs = CurrentRuns(
            lambda: (tmp_path,),
            lambda pid: False,
            lambda current: seen.append(len(current.states) + len(current.waits)),
        )
        wait_for("a look", lambda: seen, seconds=120)
        runs.close()
    assert set(seen) == {0}


def test_runs_of_several_directories_are_shown(tmp_path: Path) -> None:
    """Each run of a soak of kills has a directory of reports of its own."""
    first, second = (create_run(tmp_path / place, "run") for place in ("kill-rank-0001", "kill-rank-0002"))
    runs = CurrentRuns(lambda: tmp_path.glob("*"), lambda pid: pid == os.getpid())

    def is_shown(owned: RunDirectory) -> bool:
        return [state.directory for state in runs.now.states] == [str(owned.path)]

    first.lock.release()
    wait_for("the second", lambda: is_shown(second), seconds=120)
    with RunLock.acquire(first.path):
        second.lock.release()
        wait_for("the first", lambda: is_shown(first), seconds=120)
    runs.close()


def test_who_waits_for_a_core_is_shown_where_it_is_one_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = tuple(CoresWait(pid, 1.0, 2.0, 60.0) for pid in (11, 12))
    monkeypatch.setattr("chaos.live.holders.waits_for_cores", lambda: waits)
    runs = CurrentRuns(lambda: (tmp_path,), lambda pid: pid == 12)
    wait_for("a look", lambda: runs.now.waits, seconds=120)
    runs.close()
    assert runs.now.waits == waits[1:]


def test_a_look_that_is_stuck_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A soak and a test end when their runs do."""
    looking, go_on = threading.Event(), threading.Event()
    looks: list[Current] = []
    joined: list[str] = []

    def places() -> tuple[Path, ...]:
        looking.set()
        go_on.wait()
        return (tmp_path,)

    runs = CurrentRuns(places, on_look=looks.append)
    assert looking.wait(120)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "join", lambda thread, timeout=None: joined.append(thread.name))
        runs.close()
    assert (joined, looks) == ([], [])
    go_on.set()


def test_what_follows_a_run_is_imported_in_the_thread_that_looks() -> None:
    """It takes a while: neither the driver of a run nor a soak or pytest that starts one waits for it."""
    program = """
import sys
import chaos.live, chaos.live.current, chaos.live.words
import chaos.live.terminal.looking, chaos.live.terminal.several
import chaos.pytest_plugin.status_line
heavy = [name for name in sys.modules if name.startswith(("chaos.checks", "chaos.mechanisms", "chaos.live.follower"))]
print(heavy + [name for name in ("numpy",) if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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
