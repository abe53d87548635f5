"""Heal puts everything back where nothing can be recorded: on a full disk, in a read-only reports directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.storage.disk_full import SOURCE
from chaos.heal.heal import heal_all, heal_run
from chaos.heal.undo import UndoContext, undo_step
from chaos.history.ledger import Ledger, LedgerError, UndoStep
from chaos.machine.job.processes import find_run_processes
from chaos.machine.linux.mounts import may_mount, mount_memory, mount_read_only, mounts_at, mounts_in, unmount
from chaos.store.directory import RunDirectory, RunDirectoryError, create_run, make_private_directory, unfinished_files

Start = Callable[..., "subprocess.Popen[bytes]"]

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not may_mount(), reason="mounting needs CAP_SYS_ADMIN, which this process has not"),
]


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[Path]:
    """A reports directory on a small disk of its own."""
    path = tmp_path / "reports"
    path.mkdir()
    mount_memory(path, "small-disk", 1 << 20)
    yield path
    for mount in reversed([*mounts_at(path), *mounts_in(path)]):
        unmount(Path(mount.point))


def fill(directory: Path) -> Path:
    """Take all the room that is left, and return what has to be removed for some."""
    ballast = directory / "ballast"
    with ballast.open("wb") as file:
        for size in (1 << 16, 1):
            try:
                while os.write(file.fileno(), bytes(size)):
                    continue
            except OSError:
                continue
    return ballast


def left_by_a_killed_harness(run: RunDirectory, start: Start, place: Path) -> Path:
    """A job's process, a private directory and a mount, each with its undo step; the private directory is returned."""
    start("sleep", "1000", run=run.token)
    private = make_private_directory(run.ledger, run.token, parent=place)
    storage = run.path / "job" / "checkpoints"
    storage.mkdir(parents=True)
    run.ledger.record(UndoStep("storage", "disk", "unmount-storage", {"path": str(storage)}, "unmount it"))
    mount_memory(storage, "a-disk", 1 << 16)
    run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}))
    return private


def nothing_is_left(run: RunDirectory, private: Path) -> None:
    assert find_run_processes(run.token) == []
    assert not private.exists()
    assert mounts_in(run.path) == []


def test_a_full_disk_keeps_nothing_from_being_put_back(dead: RunDirectory, start: Start, tmp_path: Path) -> None:
    private = left_by_a_killed_harness(dead, start, tmp_path)
    ballast = fill(dead.path.parent)
    report = heal_run(dead.path)
    nothing_is_left(dead, private)
    assert report.outcome == "failed", "it is not on record, so it is said"
    (failed,) = report.failed
    assert failed.startswith("what was done is not on record, heal again when") and "No space left" in failed
    ballast.unlink()
    assert heal_run(dead.path).ok
    assert dead.ledger.open_steps() == []
    assert heal_all(dead.path.parent) == []


def test_read_only_reports_keep_nothing_from_being_put_back(dead: RunDirectory, start: Start, tmp_path: Path) -> None:
    private = left_by_a_killed_harness(dead, start, tmp_path)
    reports = dead.path.parent
    for path in (reports / "kill-rank-20260101-000000-00a0", reports / ".latest.00000000.new"):
        path.mkdir()
    mount_read_only(reports)
    # The mount below hides what was mounted in the directory before; it is put back by the second heal.
    (report,) = heal_all(reports)
    assert find_run_processes(dead.token) == [] and not private.exists()
    assert report.outcome == "failed" and "Read-only file system" in report.failed[0]
    unmount(reports)
    (again,) = heal_all(reports)
    assert again.outcome == "healed", again.failed
    nothing_is_left(dead, private)


def test_a_run_that_cannot_be_made_on_a_full_disk_leaves_nothing(reports: Path) -> None:
    create_run(reports, "first").lock.release()
    ballast = fill(reports)
    before = {path.name for path in reports.iterdir()}
    with pytest.raises(RunDirectoryError, match="No space left"):
        create_run(reports, "second")
    assert {path.name for path in reports.iterdir()} == before
    assert unfinished_files(reports) == []
    ballast.unlink()


def test_an_unrecorded_undo_is_told_and_the_step_stays_open(
    tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    step = ledger.record(UndoStep("a", None, "good"))

    def full(*_: object) -> None:
        raise LedgerError("disk full")

    monkeypatch.setattr(Ledger, "close", full)
    undone = undo_step(ledger, step, {"good": lambda *_: "done"}, UndoContext(token, SYSTEM_CLOCK))
    assert (undone.ok, undone.how, str(undone.unrecorded)) == (True, "done", "disk full")
    assert ledger.open_steps() == [step]


def test_a_mount_that_no_ledger_tells_of_is_taken_away_and_its_files_are_kept(dead: RunDirectory) -> None:
    storage = dead.path / "job" / "checkpoints"
    storage.mkdir(parents=True)
    mount_memory(storage, SOURCE, 1 << 16)
    (storage / "saved").write_text("kept")
    mount_read_only(storage)
    (report,) = heal_all(dead.path.parent)
    assert report.outcome == "healed" and report.done == [
        f"unmounted {storage}",
        f"unmounted {storage}, 1 entries kept",
    ]
    assert mounts_in(dead.path) == [] and (storage / "saved").read_text() == "kept"


@pytest.mark.parametrize("path", ["{run}/../elsewhere", "{run}/link/elsewhere"])
def test_a_mount_outside_the_run_is_left_alone_whatever_its_path_looks_like(
    dead: RunDirectory, reports: Path, path: str
) -> None:
    elsewhere = reports / "elsewhere"
    elsewhere.mkdir()
    (dead.path / "link").symlink_to(reports)
    mount_memory(elsewhere, "anothers", 1 << 16)
    dead.ledger.record(UndoStep("d", "disk", "unmount-storage", {"path": path.format(run=dead.path)}))
    report = heal_run(dead.path)
    assert "is in no directory of this run; it was left alone" in report.failed[0]
    assert len(mounts_at(elsewhere)) == 1


def test_a_mount_whose_files_find_no_room_stays_until_there_is_some(dead: RunDirectory, start: Start) -> None:
    """What the job has saved is worth more than a quick end: nothing is thrown away, and heal says what is left."""
    storage = dead.path / "job" / "checkpoints"
    storage.mkdir(parents=True)
    dead.ledger.record(UndoStep("storage", "disk", "unmount-storage", {"path": str(storage)}, "unmount it"))
    mount_memory(storage, SOURCE, 1 << 20)
    (storage / "saved").write_bytes(bytes(1 << 18))
    start("sleep", "1000", run=dead.token)
    ballast = fill(dead.path.parent)
    report = heal_run(dead.path)
    assert not report.ok and any("No space left" in text and "storage" in text for text in report.failed)
    assert find_run_processes(dead.token) == [], "the rest is put back"
    assert (storage / "saved").exists() and len(mounts_at(storage)) == 1
    ballast.unlink()
    assert heal_run(dead.path).ok
    assert mounts_in(dead.path) == [] and (storage / "saved").stat().st_size == 1 << 18
    assert {path.name for path in storage.parent.iterdir()} == {"checkpoints"}
