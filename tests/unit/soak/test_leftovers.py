"""Whatever a killed harness leaves is found, and a run that was put back shows nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.file_lock import FileLock
from chaos.base.wait import wait_for
from chaos.history.ledger import UndoStep
from chaos.history.writer import HistoryWriter
from chaos.machine.linux.procfs import environment
from chaos.soak.leftovers import leftovers
from chaos.store.directory import RunDirectory, make_private_directory
from tests.unit.conftest import MakeDeep

Start = Callable[..., "subprocess.Popen[bytes]"]
NOBODY = 2**22 + 1
"""A PID that Linux never gives."""


def with_history(run: RunDirectory) -> Path:
    path = run.path / "history" / "harness.jsonl"
    with HistoryWriter(path, writer="harness", run=run.token, clock=SYSTEM_CLOCK) as history:
        history.record("run.start")
    return path


def test_a_run_that_was_put_back_shows_nothing(dead: RunDirectory, reports: Path) -> None:
    with_history(dead)
    (reports / "latest").symlink_to(dead.run)
    (dead.path / "history" / "train-rank_0-1.jsonl").write_bytes(b'{"seq": 0, "mo')  # a killed writer's
    assert leftovers(reports, NOBODY) == []


def test_every_kind_of_leftover_is_found(
    dead: RunDirectory,
    reports: Path,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    private = make_private_directory(dead.ledger, dead.token)
    request.addfinalizer(lambda: shutil.rmtree(private))  # it is in /tmp where this test's own path is too long
    history = with_history(dead)
    history.write_bytes(history.read_bytes() + b"garbage\n")
    child = start("sleep", "1000", run=dead.token)
    wait_for("its program", lambda: (environment(child.pid) or {}).get("CHAOS_RUN") == dead.token, seconds=60)
    (dead.path / ".run.json.0000abcd.new").write_text("{")
    (dead.path / "job" / ".checkpoints.kept").mkdir(parents=True)
    (reports / "kill-rank-20260101-000000-00a0").mkdir()
    (reports / ".latest.00000000.new").symlink_to("nowhere")
    found = "\n".join(leftovers(reports, NOBODY))
    for text in (
        f"process {child.pid}: sleep 1000",
        f"private directory {private}",
        "open undo step private-directory",
        "harness.jsonl:3",
        "unfinished file .run.json.0000abcd.new",
        "unfinished file .latest.00000000.new",
        ".checkpoints.kept",
        "kill-rank-20260101-000000-00a0: its making was cut off",
    ):
        assert text in found


def test_a_process_that_only_works_in_the_directory_is_found(dead: RunDirectory, reports: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=reports) as child:
        assert leftovers(reports, NOBODY) == [f"process {child.pid} names {reports.resolve()}"]


def test_a_lock_that_outlives_its_holder_is_found(dead: RunDirectory, reports: Path) -> None:
    lock = FileLock.try_acquire(dead.path / ".lock")
    assert lock is not None
    with lock:
        assert any("lock" in text for text in leftovers(reports, os.getpid()))
    assert leftovers(reports, NOBODY) == []


def test_a_run_that_was_broken_off_is_never_judged_a_pass(
    dead: RunDirectory, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Passed:
        verdict = "pass"

    with_history(dead)
    (dead.path / "plan.json").write_text("{}")
    monkeypatch.setattr("chaos.soak.leftovers.judge", lambda _: Passed)
    assert leftovers(reports, NOBODY) == [f"{dead.run}: it was broken off and is judged pass"]


def test_a_control_group_is_found_also_where_its_step_was_closed(
    dead: RunDirectory, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = tmp_path / "cgroup"
    monkeypatch.setattr("chaos.soak.leftovers.CONTROL_GROUPS", groups)
    with_history(dead)
    quota, memory = groups / "cpu" / f"chaos-{dead.token}-slow-0", groups / "memory" / "above" / "chaos-oom-7-1"
    for group in (quota, memory, groups / "cpu" / "chaos-another-run-0", groups / "memory" / "chaos-oom-8-1"):
        group.mkdir(parents=True)
    step = UndoStep("oom", "oom", "remove-memory-group", {"path": str(memory)})
    dead.ledger.record(step)
    dead.ledger.close(step.id, "done")
    assert leftovers(reports, NOBODY) == [f"{dead.run}: control group {path}" for path in (quota, memory)]


def test_an_open_step_is_found_by_its_id(dead: RunDirectory, reports: Path) -> None:
    with_history(dead)
    dead.ledger.record(UndoStep("job", None, "end-job", {"run": dead.token}))
    assert leftovers(reports, NOBODY) == [f"{dead.run}: open undo step job"]


def test_directories_too_deep_to_be_searched_are_told(dead: RunDirectory, reports: Path, make_deep: MakeDeep) -> None:
    make_deep(dead.path / "job" / "deep")
    message = f"not searched: {reports.resolve()}: has more than 256 levels of directories below"
    assert message in leftovers(reports, NOBODY)
