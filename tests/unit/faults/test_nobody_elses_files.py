"""Faults of the storage act on a disk or a mount of the run's own; the file systems of the machine are left alone."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.beside.slow_opens import watch_opens
from chaos.faults.kind import Victim
from chaos.faults.storage import storage_stall
from chaos.heal.undo import UNDO_ACTIONS, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux import disk_image
from chaos.machine.linux.mounts import Mount
from chaos.machine.linux.process import identify
from chaos.store.directory import RunDirectory


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file system is asked to do anything."""

    def refused(*_: object) -> int:
        raise AssertionError("a file system was acted on")

    monkeypatch.setattr(fcntl, "ioctl", refused)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "act", [disk_image.freeze, disk_image.thaw, disk_image.shut_down, disk_image.flush, disk_image.is_frozen]
)
@pytest.mark.parametrize("device", [None, "/dev/loop0", "/dev/sda1"])
def test_a_file_system_that_is_no_disk_of_the_runs_own_is_not_acted_on(
    act: Callable[[Path], object], device: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is mounted there any more, or something else is than the directory lies on."""
    listed = [] if device is None else [Mount(str(tmp_path), ("rw",), "ext4", device, ("rw",))]
    monkeypatch.setattr(disk_image, "mounts_at", lambda _: listed)
    stat = os.stat

    def of_a_device(path: Any, **more: Any) -> os.stat_result:
        return stat("/dev/null" if path == device else path, **more)

    monkeypatch.setattr(os, "stat", of_a_device)
    with pytest.raises(OSError, match="on no disk of the run's own") as raised:
        act(tmp_path)
    assert raised.value.errno == errno.ENOTBLK


@pytest.mark.usefixtures("untouched")
def test_a_stall_has_ended_when_its_disk_was_taken_away(tmp_path: Path) -> None:
    victim = Victim(0, replace(identify(os.getpid()), start_time=1), tmp_path / "record", storage=tmp_path)
    assert storage_stall.KIND.ended(cast("Job", None), victim)


@pytest.mark.usefixtures("untouched")
def test_the_undo_of_a_stall_thaws_no_other_file_system(
    run: RunDirectory, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.mkdir(parents=True, exist_ok=True)
    foreign = [Mount(str(storage), ("rw",), "tmpfs", "tmpfs", ("rw",))]
    monkeypatch.setattr("chaos.faults.storage.undo.mounts_at", lambda _: foreign)
    step = UndoStep("s", "first", "thaw-storage", {"path": str(storage)})
    assert "no disk of the run's own" in UNDO_ACTIONS["thaw-storage"](step, UndoContext(run.token, SYSTEM_CLOCK))


def test_opens_are_watched_in_a_mount_of_ones_own_only(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing is mounted at"):
        watch_opens(str(tmp_path))
