"""A directory without room, and one that is read-only: made, proven and put back with the kernel's own means."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.behaviours import Preparing
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage import disk_full, read_only, storage_gone
from chaos.faults.storage.mounted_over import MountedOver
from chaos.faults.storage.storage import unmount_step
from chaos.faults.storage.undo import unmount_storage
from chaos.heal.heal import heal_run
from chaos.heal.undo import CannotUndo, UndoContext
from chaos.machine.job.local import LocalJob
from chaos.machine.linux.mounts import may_mount, mount_read_only, mounts_at, unmount
from chaos.store.directory import RunDirectory
from tests.unit.faults.conftest import Undo

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not may_mount(), reason="mounting needs CAP_SYS_ADMIN, which this process has not"),
]

BIG = 100 << 10
"""More than a full disk has room for, less than the half of what an ordinary one has."""


def test_a_full_disk_breaks_a_file_off_in_the_middle_and_undo_keeps_it(
    run: RunDirectory, job: LocalJob, victim: Victim, storage: Path, undo: Undo
) -> None:
    assert isinstance(disk_full.KIND, Preparing)
    (step,) = disk_full.KIND.prepare_steps("full", storage)
    run.ledger.record(step)
    disk_full.KIND.prepare(storage)
    (storage / "before").mkdir()
    (storage / "before" / "file").write_bytes(bytes(BIG))
    assert disk_full.KIND.evidence(job, victim) is None
    disk_full.KIND.inject(job, victim)
    disk_full.KIND.inject(job, victim)  # for a second rank that saves there
    shown = disk_full.KIND.evidence(job, victim)
    assert shown is not None and shown["refused"] == "ENOSPC" and shown["mount"].startswith("tmpfs rw")
    with pytest.raises(OSError) as raised, (storage / "half").open("wb", buffering=0) as file:
        for _ in range(BIG >> 12):
            file.write(bytes(1 << 12))
    assert raised.value.errno == errno.ENOSPC
    half = (storage / "half").stat().st_size
    assert 0 < half < BIG

    assert undo(run, step) == f"unmounted {storage}, 2 entries kept"
    assert mounts_at(storage) == []
    assert (storage / "half").stat().st_size == half
    assert (storage / "before" / "file").stat().st_size == BIG
    assert sorted(path.name for path in storage.parent.iterdir()) == [storage.name]
    (storage / "more").write_bytes(bytes(BIG))  # there is room again
    assert unmount_storage(step, UndoContext(run.token, SYSTEM_CLOCK)) == f"nothing is mounted at {storage}"


def test_a_disk_that_was_not_prepared_is_not_filled(job: LocalJob, victim: Victim, storage: Path) -> None:
    storage.mkdir()
    with pytest.raises(FaultMissed, match="rank 0 sees no mount"):
        disk_full.KIND.inject(job, victim)


def test_a_read_only_directory_refuses_root_too_and_undo_opens_it(
    run: RunDirectory, job: LocalJob, victim: Victim, storage: Path, undo: Undo
) -> None:
    storage.mkdir()
    (storage / "before").write_bytes(b"1")
    (step,) = read_only.KIND.undo_steps("ro", [victim])
    run.ledger.record(step)
    assert read_only.KIND.evidence(job, victim) is None
    read_only.KIND.inject(job, victim)
    read_only.KIND.inject(job, victim)  # for a second rank: not mounted twice
    assert len(mounts_at(storage)) == 1
    shown = read_only.KIND.evidence(job, victim)
    assert shown is not None and shown["refused"] == "EROFS"
    with pytest.raises(OSError) as raised:
        (storage / "new").mkdir()
    assert raised.value.errno == errno.EROFS
    assert (storage / "before").read_bytes() == b"1"
    assert undo(run, step) == f"unmounted {storage}"
    (storage / "new").mkdir()
    assert read_only.KIND.evidence(job, victim) is None


def test_a_vanished_directory_has_no_room_for_a_name_and_undo_brings_it_back(
    run: RunDirectory, job: LocalJob, victim: Victim, storage: Path, undo: Undo
) -> None:
    storage.mkdir()
    (storage / "before").write_bytes(b"1")
    (step,) = storage_gone.KIND.undo_steps("gone", [victim])
    run.ledger.record(step)
    assert storage_gone.KIND.evidence(job, victim) is None
    storage_gone.KIND.inject(job, victim)
    storage_gone.KIND.inject(job, victim)  # for a second rank: not mounted twice
    assert len(mounts_at(storage)) == 1
    shown = storage_gone.KIND.evidence(job, victim)
    assert shown is not None and shown["refused"] == "ENOENT"
    assert list(storage.iterdir()) == []
    assert undo(run, step) == f"unmounted {storage}"
    assert (storage / "before").read_bytes() == b"1"
    assert storage_gone.KIND.evidence(job, victim) is None


@pytest.mark.parametrize("kind", [disk_full.KIND, read_only.KIND, storage_gone.KIND], ids=lambda kind: kind.name)
def test_without_a_directory_or_a_process_nothing_is_done(
    kind: disk_full.DiskFull | MountedOver, job: LocalJob, victim: Victim, tmp_path: Path
) -> None:
    with pytest.raises(FaultMissed, match="does not say where it saves"):
        kind.inject(job, Victim(0, job.launcher, tmp_path))
    job.stop(0)
    with pytest.raises(FaultMissed, match="rank 0 has ended"):
        kind.inject(job, victim)


HARNESS = """
import os, signal, sys
from pathlib import Path
from chaos.faults.storage import disk_full, read_only
from chaos.faults.storage.storage import unmount_step
from chaos.history.ledger import Ledger
from chaos.machine.linux.mounts import mount_read_only, resize_memory
from chaos.store.directory import read_run
from chaos.store.key import seal_of
kind, run, storage = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
Ledger(run / "undo.jsonl", seal_of(read_run(run)["token"])).record(unmount_step(kind, storage, "by hand"))
if kind == "disk-full":
    disk_full.KIND.prepare(storage)
    (storage / "half").write_bytes(bytes(5000))
    resize_memory(storage, 16384)
else:
    storage.mkdir()
    (storage / "half").write_bytes(bytes(5000))
    mount_read_only(storage)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["disk-full", "read-only"])
def test_heal_puts_it_back_after_the_harness_was_killed(kind: str, run: RunDirectory, storage: Path) -> None:
    run.lock.release()
    killed = subprocess.run([sys.executable, "-c", HARNESS, kind, run.path, storage], cwd=Path.cwd())
    assert killed.returncode == -signal.SIGKILL
    assert len(mounts_at(storage)) == 1
    report = heal_run(run.path)
    assert report.outcome == "healed" and any(f"unmounted {storage}" in text for text in report.done), report
    assert mounts_at(storage) == []
    assert (storage / "half").read_bytes() == bytes(5000)
    assert heal_run(run.path).outcome == "nothing"


def test_an_undo_that_was_cut_off_is_completed(run: RunDirectory, storage: Path) -> None:
    """At each point at which it can be cut off: copying, copied, unmounted, moving."""
    context = UndoContext(run.token, SYSTEM_CLOCK)
    step = unmount_step("full", storage, "")
    kept = storage.with_name(f".{storage.name}.kept")
    for cut in ("copying", "copied", "moving"):
        disk_full.KIND.prepare(storage)
        (storage / "a").write_text(cut)
        (storage / "b").write_text(cut)
        partial = kept.with_name(f"{kept.name}.new") if cut == "copying" else kept
        partial.mkdir()
        (partial / "a").write_text(cut if cut == "moving" else "stale")
        if cut == "moving":
            unmount(storage)
            (storage / "b").write_text(cut)
        unmount_storage(step, context)
        assert {path.name: path.read_text() for path in storage.iterdir()} == {"a": cut, "b": cut}
        assert sorted(path.name for path in storage.parent.iterdir()) == [storage.name]
        for path in storage.iterdir():
            path.unlink()


def test_two_faults_on_one_storage_keep_what_was_written(run: RunDirectory, storage: Path) -> None:
    """One file system serves both full disks; a read-only mount above it is taken away first."""
    steps = [unmount_step(name, storage, "") for name in ("full", "full-too", "read-only")]
    disk_full.KIND.prepare(storage)
    disk_full.KIND.prepare(storage)
    (storage / "file").write_text("kept")
    mount_read_only(storage)
    assert len(mounts_at(storage)) == 2
    for step in reversed(steps):
        unmount_storage(step, UndoContext(run.token, SYSTEM_CLOCK))
    assert mounts_at(storage) == []
    assert {path.name: path.read_text() for path in storage.iterdir()} == {"file": "kept"}
    assert sorted(path.name for path in storage.parent.iterdir()) == [storage.name]


def test_a_directory_that_the_job_has_made_again_is_joined_with_what_was_kept(run: RunDirectory, storage: Path) -> None:
    kept = storage.with_name(f".{storage.name}.kept")
    for place, name in ((kept, "old"), (storage, "new")):
        (place / "step" / "rank_0").mkdir(parents=True)
        (place / "step" / "rank_0" / name).write_text(name)
    unmount_storage(unmount_step("full", storage, ""), UndoContext(run.token, SYSTEM_CLOCK))
    assert sorted(path.name for path in (storage / "step" / "rank_0").iterdir()) == ["new", "old"]
    assert not kept.exists()


def test_a_mount_of_nobody_or_of_another_run_is_left_alone(run: RunDirectory, storage: Path, tmp_path: Path) -> None:
    context = UndoContext("another", SYSTEM_CLOCK)
    disk_full.KIND.prepare(storage)
    for path, refused in ((storage, context), (tmp_path / "x", UndoContext(run.token, SYSTEM_CLOCK))):
        with pytest.raises(CannotUndo, match="is in no directory of this run"):
            unmount_storage(unmount_step("full", path, ""), refused)
    with pytest.raises(CannotUndo, match="absolute"):
        unmount_storage(unmount_step("full", Path("checkpoints"), ""), context)
    assert len(mounts_at(storage)) == 1
    assert os.path.ismount(storage)
