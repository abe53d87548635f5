"""A job that has made directories some thousand levels deep keeps nothing of its run from being healed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.faults.storage.disk_full import SOURCE
from chaos.faults.storage.storage import PROBE, unmount_step
from chaos.heal.heal import heal_all, heal_run
from chaos.heal.interrupted_acts import find_cut_off, remove_cut_off
from chaos.machine.linux.mounts import may_mount, mount_memory, mounts_at, unmount
from chaos.store.directory import RunDirectory, make_private_directory
from tests.unit.conftest import MakeDeep, Start


@pytest.fixture
def storage(dead: RunDirectory) -> Path:
    """The directory that the job of a dead run saves in, at which a fault of storage was made."""
    path = dead.path / "job" / "checkpoints"
    path.mkdir(parents=True)
    dead.ledger.record(unmount_step("gone", path.resolve(), "unmount it"))
    return path


@pytest.fixture
def mounted(storage: Path) -> Iterator[Path]:
    """A small disk is mounted there."""
    path = storage.resolve()
    mount_memory(path, SOURCE, 1 << 24)
    yield path
    unmount(path)


def test_everything_else_is_healed_and_what_was_not_searched_is_told(
    dead: RunDirectory, reports: Path, storage: Path, start: Start, make_deep: MakeDeep
) -> None:
    make_deep(storage / "deep")
    (storage / PROBE).touch()
    process = start("sleep", "1000", run=dead.token)
    (report,) = heal_all(reports)
    assert process.wait(60) == -9 and dead.ledger.open_steps() == []
    assert f"removed {(storage / PROBE).resolve()}" in report.done and not (storage / PROBE).exists()
    why = "cannot be looked into: has more than 256 levels of directories below"
    assert report.failed == [f"{dead.path.resolve() / 'job'} {why}"]


def test_without_a_fault_of_storage_nobody_looks_for_what_only_such_a_one_leaves(
    dead: RunDirectory, reports: Path, start: Start, make_deep: MakeDeep
) -> None:
    make_deep(dead.path / "job")
    assert find_cut_off(dead.path, ()) == [] and remove_cut_off(dead.path, ()) == ([], [])
    assert heal_all(reports) == [] and heal_run(dead.path).outcome == "nothing"
    process = start("sleep", "1000", run=dead.token)
    (report,) = heal_all(reports)
    assert (process.wait(60), report.outcome, report.failed) == (-9, "healed", [])


def test_a_private_directory_too_deep_to_be_removed_is_told(
    dead: RunDirectory, reports: Path, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recurse(path: Path) -> None:
        """As the standard library before Python 3.13, with some thousand levels and descriptors enough."""
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr("chaos.store.directory.MEMORY", tmp_path)
    private = make_private_directory(dead.ledger, dead.token, parent=tmp_path)
    (private / "rank_0").mkdir()
    process = start("sleep", "1000", run=dead.token)
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", recurse)
        (report,) = heal_all(reports)
    message = f"{private / 'rank_0'} has too many levels of directories below: remove it by rm -r"
    assert process.wait(60) == -9 and report.failed == [f"private-directory: {message}"], report
    (again,) = heal_all(reports)
    assert again.outcome == "healed" and not private.exists()


@pytest.mark.skipif(not may_mount(), reason="mounting needs CAP_SYS_ADMIN, which this process has not")
def test_a_mount_whose_files_cannot_all_be_kept_is_left_and_told(
    dead: RunDirectory, reports: Path, mounted: Path, start: Start, make_deep: MakeDeep
) -> None:
    make_deep(mounted / "deep", 600)
    process = start("sleep", "1000", run=dead.token)
    (report,) = heal_all(reports)
    assert process.wait(60) == -9
    message = f"{mounted}: has more than 256 levels of directories below"
    assert any(message in text for text in report.failed) and len(mounts_at(mounted)) == 1
