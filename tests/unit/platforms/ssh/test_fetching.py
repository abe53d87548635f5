"""What a host has written comes here, file by file: one that cannot be brought is told, and keeps no other away."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import paramiko
import pytest

from chaos.base.wait import wait_for
from chaos.machine.job.protocol import HelperLost
from chaos.platforms.ssh.connection import Connection
from chaos.platforms.ssh.host_helper import HostHelper, place_of
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.mirror import Mirror
from tests.unit.conftest import MakeDeep
from tests.unit.machine.conftest import Spec

pytestmark = pytest.mark.processes

NAMES = ("train-rank_0-5.jsonl", "train-rank_1-6.jsonl")


@pytest.fixture
def connection(host: Host) -> Iterator[Connection]:
    with Connection(host) as made:
        yield made


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A run's directory on the host, with two histories."""
    run = tmp_path / "there"
    for name in ("history", "logs/train", "meeting"):
        (run / name).mkdir(parents=True)
    for name in NAMES:
        (run / "history" / name).write_text("one\n")
    return run


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here" / "meeting").mkdir(parents=True)
    return tmp_path / "here"


def mirror_of(connection: Connection, there: Path, here: Path, owners: dict[Path, str] | None = None) -> Mirror:
    return Mirror(
        connection,
        "train",
        run=str(there),
        run_here=here,
        meeting=str(there / "meeting"),
        meeting_here=here / "meeting",
        owners=owners if owners is not None else {},
    )


def text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def test_one_file_that_cannot_be_written_here_keeps_no_other_away(
    connection: Connection, there: Path, here: Path
) -> None:
    obstacle = here / "history" / NAMES[0]
    obstacle.mkdir(parents=True)
    mirror = mirror_of(connection, there, here)
    wait_for("the other", lambda: text(here / "history" / NAMES[1]) == "one\n", seconds=60)
    (there / "logs" / "train" / "worker_0.log").write_text("said")
    wait_for("the log", lambda: text(here / "logs" / "train" / "worker_0.log") == "said", seconds=60)
    mirror.finish()
    assert list(mirror.unfetched) == [f"history/{NAMES[0]}"]
    assert mirror.lost is None


def test_a_log_never_takes_the_place_of_another_hosts_log_of_the_same_name(
    connection: Connection, there: Path, here: Path
) -> None:
    copy = here / "logs" / "train" / "ttp_log.log"
    copy.parent.mkdir(parents=True)
    copy.write_text("of another host")
    (there / "logs" / "train" / "ttp_log.log").write_text("of this host")
    (there / "logs" / "train" / "worker_0.log").write_text("said")
    mirror = mirror_of(connection, there, here, {copy: "another"})
    wait_for("the log", lambda: text(copy.with_name("worker_0.log")) == "said", seconds=60)
    mirror.finish()
    assert text(copy) == "of another host"
    assert list(mirror.unfetched) == ["logs/ttp_log.log"]
    assert "host another has a log of the same name" in mirror.unfetched["logs/ttp_log.log"]


def test_a_directory_too_deep_to_be_brought_is_told(
    connection: Connection, there: Path, here: Path, make_deep: MakeDeep
) -> None:
    make_deep(there / "logs" / "train" / "deep")
    (there / "logs" / "train" / "worker_0.log").write_text("said")
    mirror = mirror_of(connection, there, here)
    mirror.finish()
    assert text(here / "logs" / "train" / "worker_0.log") == "said"
    assert list(mirror.unfetched) == ["logs/deep"] and mirror.lost is None


def test_what_can_be_brought_at_last_is_no_loss(connection: Connection, there: Path, here: Path) -> None:
    obstacle = here / "history" / NAMES[0]
    obstacle.mkdir(parents=True)
    mirror = mirror_of(connection, there, here)
    wait_for("trouble", lambda: mirror.unfetched, seconds=60)
    shutil.rmtree(obstacle)
    mirror.finish()
    assert (mirror.unfetched, text(obstacle)) == ({}, "one\n")


def test_a_channel_that_ends_is_opened_again_and_nothing_is_copied_twice(
    connection: Connection, there: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[paramiko.SFTPClient] = []
    really = connection.sftp

    def sftp() -> paramiko.SFTPClient:
        opened.append(really())
        return opened[-1]

    monkeypatch.setattr(connection, "sftp", sftp)
    mirror = mirror_of(connection, there, here)
    copy = here / "history" / NAMES[0]
    wait_for("the first line", lambda: text(copy) == "one\n", seconds=60)
    channel = opened[0].get_channel()
    assert channel is not None
    channel.close()
    with (there / "history" / NAMES[0]).open("a") as file:
        file.write("two\n")
    wait_for("the second line", lambda: text(copy) == "one\ntwo\n", seconds=60)
    mirror.finish()
    assert (mirror.lost, mirror.unfetched, len(opened)) == (None, {}, 2)


def test_without_a_connection_the_mirror_ends(connection: Connection, there: Path, here: Path) -> None:
    mirror = mirror_of(connection, there, here)
    connection.close()
    wait_for("loss", lambda: mirror.lost, seconds=60)
    mirror.finish()


@pytest.fixture
def run_here(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    for name in ("history", "logs/train", "job", "private/meeting", "scenario"):
        (run / name).mkdir(parents=True)
    return run


Fields = list[tuple[str, dict[str, Any]]]


def helper_of(connection: Connection, token: str, run_here: Path, told: Fields) -> HostHelper:
    return HostHelper(
        connection,
        0,
        token,
        None,
        run_here=run_here,
        private_here=run_here / "private",
        meeting_here=run_here / "private" / "meeting",
        scenario_here=run_here / "scenario",
        owners={},
        tell=lambda event, **fields: told.append((event, fields)),
    )


def test_what_a_launch_has_left_and_cannot_be_fetched_is_told(
    connection: Connection, host: Host, run_here: Path, token: str, spec: Spec
) -> None:
    entries: Fields = []
    helper = helper_of(connection, token, run_here, entries)
    try:
        (run_here / "job" / "bad").mkdir()
        launch = spec("rmdir bad; echo said > bad; echo said > good")
        one = helper.start(replace(launch, cwd=run_here / "job", log=run_here / "logs" / "train" / "msrun.log"))
        wait_for("end", lambda: helper.exit_status("train", one), seconds=30)
        helper.stop("train", 5.0)
        assert text(run_here / "job" / "good") == "said\n"
        ((event, fields),) = entries
        assert (event, fields["attempt"], list(fields["files"])) == ("host.unfetched", "train", ["job/bad"])
        assert "directory" in fields["files"]["job/bad"]
    finally:
        helper.remove(place_of(host.directory, token, 0))
        helper.close()


def test_a_connection_that_is_lost_is_no_list_of_files(
    connection: Connection, run_here: Path, token: str, spec: Spec, host: Host
) -> None:
    entries: Fields = []
    helper = helper_of(connection, token, run_here, entries)
    helper.start(replace(spec("true"), cwd=run_here / "job", log=run_here / "logs" / "train" / "msrun.log"))
    connection.close()
    with pytest.raises(HelperLost, match="could not be fetched"):
        helper.fetch("train")
    assert entries == []
    helper.close()
    with Connection(host) as again:
        again.run(f"rm -r {place_of(host.directory, token, 0)}")
