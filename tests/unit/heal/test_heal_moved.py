"""What lies in the copy of a run's directory is the original's: heal does not touch it. A moved run is healed."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.heal.heal import heal_all, heal_run
from chaos.history.ledger import Ledger, UndoStep
from chaos.machine.job.processes import find_run_processes
from chaos.machine.linux.process import identify
from chaos.store.directory import RunDirectory, create_run, read_run
from chaos.store.ownership import LOCK_NAME

pytestmark = pytest.mark.processes

Start = Callable[..., "subprocess.Popen[bytes]"]


def test_a_copy_is_told_and_not_touched_whether_its_run_lives_or_not(
    dead: RunDirectory, reports: Path, start: Start, tmp_path: Path
) -> None:
    live = create_run(reports, "kill-rank")
    for run in (live, dead):
        run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}))
    child = start("sleep", "1000", run=live.token)
    wait_for("it", lambda: find_run_processes(live.token), seconds=60)
    copies = [tmp_path / "elsewhere", reports / "copy"]
    for copy, run in zip(copies, (live, dead), strict=True):
        shutil.copytree(run.path, copy)
        report = heal_run(copy)
        assert (report.outcome, report.ok, report.done, report.failed) == ("copy", False, [], [])
        assert f"a copy: its processes and steps belong to {run.path}" in report.leftovers[0]
    outcomes = {report.run: report.outcome for report in heal_all(reports)}
    assert outcomes == {"copy": "copy", dead.run: "healed", live.run: "live"}
    assert child.poll() is None
    assert Ledger(copies[1] / "undo.jsonl").read().open


def test_a_run_that_was_moved_is_healed_where_it_is(dead: RunDirectory, start: Start, tmp_path: Path) -> None:
    child = start("sleep", "1000", run=dead.token)
    wait_for("it", lambda: find_run_processes(dead.token), seconds=60)
    moved = dead.path.rename(tmp_path / "moved")
    assert heal_run(moved).outcome == "healed"
    assert child.wait(60) == -signal.SIGKILL


def test_a_copy_whose_original_is_gone_waits_for_the_harness_that_had_it(
    reports: Path, start: Start, tmp_path: Path
) -> None:
    code = "import sys; from pathlib import Path; from chaos.store.directory import create_run; "
    code += "run = create_run(Path(sys.argv[1]), 'a'); print(run.run, run.token, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(reports)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        name, token = harness.stdout.readline().split()
        child = start("sleep", "1000", run=token)
        wait_for("it", lambda: find_run_processes(token), seconds=60)
        copy = Path(shutil.copytree(reports / name, tmp_path / "copy"))
        shutil.rmtree(reports / name)
        for _ in range(2):
            report = heal_run(copy)
            assert report.outcome == "live" and f"process {harness.pid}" in report.leftovers[0]
        assert child.poll() is None
        harness.kill()
    report = heal_run(copy)
    assert report.outcome == "refused" and "the run was made in another directory" in report.refused[0]
    assert f"process {child.pid}" in report.proposed[0] and child.poll() is None


def of_a_live_harness(reports: Path, copy: Path, start: Start) -> tuple[subprocess.Popen[str], subprocess.Popen[bytes]]:
    """A harness and a process of its run, with a copy of the run without its lock, and the original out of sight."""
    code = "import sys; from pathlib import Path; from chaos.store.directory import create_run; "
    code += "run = create_run(Path(sys.argv[1]), 'a'); print(run.run, run.token, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(reports)]
    harness = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    name, token = harness.stdout.readline().split()
    child = start("sleep", "1000", run=token)
    wait_for("it", lambda: find_run_processes(token), seconds=60)
    shutil.copytree(reports / name, copy, ignore=lambda *_: {LOCK_NAME})
    reports.rename(reports.with_name("moved"))
    return harness, child


def test_of_a_copy_that_does_not_say_whose_it_is_no_living_process_is_ended(
    reports: Path, start: Start, tmp_path: Path
) -> None:
    harness, child = of_a_live_harness(reports, tmp_path / "copy", start)
    with harness:
        report = heal_run(tmp_path / "copy")
        assert report.outcome == "failed" and child.poll() is None
        assert f"processes of the run live ({child.pid})" in report.failed[0]
        harness.kill()
    child.kill()
    child.wait()
    assert heal_run(tmp_path / "copy").ok


@pytest.mark.parametrize("owner", [{"boot": "another"}, {}], ids=["of another boot", "of another PID namespace"])
def test_an_owner_that_cannot_be_looked_for_here_is_not_taken_for_dead(
    reports: Path, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: dict[str, str]
) -> None:
    harness, child = of_a_live_harness(reports, tmp_path / "copy", start)
    with harness:
        record = {"pid": child.pid, "start_time": 1, "boot": identify(child.pid).boot, **owner}
        (tmp_path / "copy" / LOCK_NAME).write_text(json.dumps(record))
        if not owner:
            monkeypatch.setattr("chaos.heal.relocated._share_our_pids", lambda _: False)
        assert heal_run(tmp_path / "copy").outcome == "failed" and child.poll() is None
        harness.kill()


@pytest.mark.parametrize("place", ["file", "loop", "nul", "long"])
def test_an_old_place_that_cannot_be_is_gone(dead: RunDirectory, tmp_path: Path, place: str) -> None:
    moved = Path(shutil.copytree(dead.path, tmp_path / "moved"))
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    old = {"file": tmp_path / "file/run", "loop": tmp_path / "loop/run", "nul": "/\0x", "long": f"/{'a' * 5000}"}[place]
    described = read_run(moved)
    (moved / "run.json").write_text(json.dumps({**described, "directory": str(old)}))
    (moved / ".run.json.0000abcd.new").touch()
    report = heal_run(moved)
    assert report.outcome == "refused" and "its run.json was not made with this user's key" in report.refused[0]
    assert (moved / ".run.json.0000abcd.new").exists()


def test_an_original_that_cannot_be_looked_at_is_told(
    dead: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(dead.path, tmp_path / "moved"))

    def refused(path: Path, other: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "samefile", refused)
    report = heal_run(moved)
    assert report.failed == [f"whether it is a copy of {dead.path} is unknown: Permission denied"]


def test_a_run_that_was_renamed_is_the_same_whoever_has_its_old_place(dead: RunDirectory, start: Start) -> None:
    renamed = dead.path.rename(dead.path.with_name("renamed"))
    shutil.copytree(renamed, dead.path)
    (renamed / ".run.json.0000abcd.new").touch()
    assert heal_run(renamed).outcome == "healed"
    assert heal_run(dead.path).outcome in ("nothing", "copy")
