"""A host is put back when nothing of the run is left there, and not when only its directory has gone."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.process import alive, identify
from chaos.machine.linux.procfs import PROC
from chaos.platforms.ssh.host_helper import place_of
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.putting_back import clean
from tests.unit.conftest import Start

pytestmark = pytest.mark.processes


@pytest.fixture
def place(host: Host, token: str) -> Path:
    return Path(place_of(host.directory, token, 0))


def test_processes_of_a_run_whose_directory_has_gone_are_ended(
    host: Host, token: str, start: Start, place: Path
) -> None:
    left = identify(start("sleep", "1000", run=token).pid)
    assert clean(host, token, 0) == "its directory had gone, ended 1 processes"
    assert not alive(left)
    assert not place.exists()
    assert clean(host, token, 0) == "nothing of the run was left"


def test_on_a_full_disk_processes_are_ended_and_a_directory_that_is_there_stays(
    host: Host, token: str, start: Start, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room() -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("chaos.platforms.ssh.host_helper.bundle", no_room)
    left = identify(start("sleep", "1000", run=token).pid)
    assert clean(host, token, 0) == "its directory had gone, ended 1 processes"
    assert not alive(left) and not place.exists()
    place.mkdir(mode=0o700)
    (place / ".chaos-run").write_text(token)
    with pytest.raises(PlatformError, match="No space left on device"):
        clean(host, token, 0)
    assert place.is_dir()
    monkeypatch.undo()
    assert clean(host, token, 0) == "removed its directory"


def test_a_process_without_identity_that_works_there_is_told_and_left_alone(
    host: Host, token: str, start: Start, place: Path
) -> None:
    place.mkdir(mode=0o700)
    (place / ".chaos-run").write_text(token)
    stranger = start("sh", "-c", f"cd {place}; exec sleep 1000")
    cwd = PROC / str(stranger.pid) / "cwd"
    wait_for("its place", lambda: cwd.readlink() == place, seconds=60)
    with pytest.raises(PlatformError, match=f"process {stranger.pid} .* works in .*; if it is, end it"):
        clean(host, token, 0)
    assert stranger.poll() is None and place.is_dir()
    stranger.kill()
    stranger.wait()
    assert clean(host, token, 0) == "removed its directory"
