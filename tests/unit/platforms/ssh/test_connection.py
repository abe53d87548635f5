"""A real sshd on a loopback port: its key is checked, and a connection that ends is an end, no error."""

from __future__ import annotations

import errno
import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from chaos.base.walking import MAX_LEVELS
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh import host_helper
from chaos.platforms.ssh.connection import Connection, HostUnreachable
from chaos.platforms.ssh.files import fetch, full_there, list_there, put, unpack_there
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.transport import ChannelTransport
from tests.unit.conftest import MakeDeep

pytestmark = pytest.mark.processes


def test_a_command_is_run_and_answers(host: Host) -> None:
    with Connection(host) as connection:
        assert connection.run("echo said; exit 3") == (3, "said\n")


def test_another_key_than_the_inventorys_is_refused(host: Host, hosts: tuple[Host, ...]) -> None:
    with pytest.raises(PlatformError, match="the inventory has SHA256:") as refused:
        Connection(replace(host, fingerprint=hosts[1].fingerprint))
    assert host.fingerprint is not None
    assert host.fingerprint in str(refused.value)


def test_an_unknown_key_is_refused_and_a_known_one_is_taken_from_known_hosts(host: Host, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    unknown = replace(host, fingerprint=None, known_hosts=str(known))
    with pytest.raises(PlatformError, match="write it into the inventory as 'fingerprint'"):
        Connection(unknown)
    key = Path(str(host.key)).with_name("host_key.pub").read_text()
    known.write_text(f"[{host.address}]:{host.port} {key}")
    Connection(unknown).close()
    stranger = Path(str(host.key)).with_name("user_key.pub").read_text()
    known.write_text(f"[{host.address}]:{host.port} {stranger}")
    with pytest.raises(PlatformError, match="its host key has changed"):
        Connection(unknown)


def test_a_user_who_may_not_log_in_is_refused_in_words(host: Host, hosts: tuple[Host, ...]) -> None:
    with pytest.raises(PlatformError, match="look at its authorized_keys"):
        Connection(replace(host, key=hosts[1].key))


def test_nobody_there_is_told_apart_from_a_refusal(host: Host) -> None:
    with pytest.raises(HostUnreachable, match="does not answer"):
        Connection(replace(host, port=1))


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-mute\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_host_that_accepts_and_does_not_speak_is_told_with_the_limit(host: Host, said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_mute, args=(server, said), daemon=True).start()
        mute = replace(host, address="127.0.0.1", port=server.getsockname()[1], connect=1.5)
        with pytest.raises(HostUnreachable, match=r"does not speak SSH for 1\.5 s \(deadlines\.connect\)"):
            Connection(mute)


def _mute(server: socket.socket, said: bytes) -> None:
    caller, _ = server.accept()
    with caller:
        caller.sendall(said)
        while caller.recv(4096):
            pass


def test_why_files_could_not_be_put_is_told_although_the_reader_ended_first(host: Host, tmp_path: Path) -> None:
    (tmp_path / "much").write_bytes(bytes(8 << 20))
    missing = tmp_path / "no" / "such"
    with Connection(host) as connection, pytest.raises(PlatformError) as failed:
        unpack_there(connection, str(missing), [], [(tmp_path / "much", "much")])
    assert str(failed.value).endswith(
        f"files could not be put into {missing}: FileNotFoundError: [Errno 2] No such file or directory: '{missing}'"
    )


@pytest.mark.parametrize(
    ("available", "told"), [("0", "; its disk is full below /var/tmp"), ("12", ""), ("-", ""), ("", "")]
)
def test_a_full_disk_of_a_host_is_named(available: str, told: str) -> None:
    said = f"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda1 100 100 {available} 100% /\n"
    connection = SimpleNamespace(host=SimpleNamespace(directory="/var/tmp"), run=lambda command: (0, said))
    assert full_there(cast(Connection, connection)) == told


def test_a_directory_that_a_full_disk_leaves_half_made_is_taken_away(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room() -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    place = tmp_path / "chaos-1"
    with Connection(host) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(host_helper, "bundle", no_room)
            with pytest.raises(PlatformError, match=f"{place} cannot be made: .*No space left"):
                host_helper.make_place(connection, str(place), "token")
        assert not place.exists(), "heal could not take it away as long as the disk is full"
        host_helper.make_place(connection, str(place), "token")
        monkeypatch.setattr(host_helper, "bundle", no_room)
        with pytest.raises(PlatformError, match="cannot be made"):
            host_helper.make_place(connection, str(place), "token")
        assert len(list(place.iterdir())) == 2, "what was there before is a run's that may go on"


def test_the_end_of_a_command_and_the_loss_of_a_connection_are_ends_of_the_stream(host: Host) -> None:
    with Connection(host) as connection:
        stream = ChannelTransport(connection, "echo last words >&2; exit 7")
        assert stream.read() == b""
        assert stream.ended() == "exit code 7: last words"
        stream.close()
        stream.close()
    connection = Connection(host)
    stream = ChannelTransport(connection, "cat")
    stream.write(b"there and back")
    assert stream.read() == b"there and back"
    connection.close()
    assert stream.read() == b""
    assert "was lost" in stream.ended()
    with pytest.raises(OSError, match="is closed"):
        stream.write(b"more")


def test_files_come_back_as_they_went_and_links_do_not(host: Host, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "inside").mkdir(parents=True)
    (there / "link").symlink_to("/etc/passwd")
    (tmp_path / "file").write_bytes(b"content")
    with Connection(host) as connection, connection.sftp() as sftp:
        put(sftp, tmp_path / "file", f"{there}/inside/file", f"{there}/unfinished")
        listing = list_there(sftp, str(there))
        assert (list(listing.files), listing.directories, listing.unlisted) == (["inside/file"], {"inside"}, {})
        fetch(sftp, f"{there}/inside/file", tmp_path / "here" / "file")
    assert (tmp_path / "here" / "file").read_bytes() == b"content"


def test_what_is_too_deep_on_a_host_is_told_and_the_rest_is_listed(
    host: Host, tmp_path: Path, make_deep: MakeDeep
) -> None:
    make_deep(tmp_path / "there" / "deep")
    (tmp_path / "there" / "file").touch()
    with Connection(host) as connection, connection.sftp() as sftp:
        listing = list_there(sftp, str(tmp_path / "there"))
    assert list(listing.files) == ["file"] and len(listing.directories) == MAX_LEVELS
    assert listing.unlisted == {"deep": f"it has more than {MAX_LEVELS} levels of directories below"}
