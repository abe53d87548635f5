"""What the user names may be a link, a pipe or standard input; what never ends or says nothing is refused by name."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.base import named_files
from chaos.base.named_files import STANDARD_INPUT, is_pipe, keep_piped, open_named, read_piped
from chaos.base.plain_files import UnreadableFile


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_files, "_pipes", {})


@contextmanager
def piped(content: bytes) -> Iterator[Path]:
    """The name that a shell gives a process substitution."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    try:
        yield Path(f"/dev/fd/{reading}")
    finally:
        os.close(reading)


def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "rank.log").write_bytes(b"x")
    (tmp_path / "latest.log").symlink_to("rank.log")
    with open_named(tmp_path / "latest.log") as stream:
        assert stream.read() == b"x"


def test_a_pipe_is_read_to_its_end() -> None:
    with piped(b"a\nb\n") as path, open_named(path) as stream:
        assert is_pipe(path)
        assert stream.read() == b"a\nb\n"


def test_standard_input_is_read_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"from a file")
    descriptor, kept = os.open(tmp_path / "a", os.O_RDONLY), os.dup(0)
    try:
        os.dup2(descriptor, 0)
        with open_named(STANDARD_INPUT) as stream:
            assert stream.read() == b"from a file"
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(descriptor)


def test_what_never_ends_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    for path, why in (
        (tmp_path / "zero", "is a terminal or a device, and no file or pipe"),
        (tmp_path, "is a directory, and no file or pipe"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "nul\0", "not a usable file name"),
    ):
        with pytest.raises(UnreadableFile, match=why) as caught:
            open_named(path)
        assert str(path) in str(caught.value)
        assert not is_pipe(path)


def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open_named(tmp_path / "pipe", seconds=0.01) as stream, pytest.raises(UnreadableFile, match="says nothing for"):
        stream.read(1)


def test_a_document_from_a_pipe_is_read_again_and_belongs_to_the_current_directory() -> None:
    with piped(b"chaos: 1\n") as path:
        name = keep_piped(path, 100)
        assert (name.parent, is_pipe(name)) == (Path(), True)
        assert read_piped(name, 100) == read_piped(path, 100) == read_piped(name, 100) == b"chaos: 1\n"


def test_a_pipe_with_a_name_belongs_to_its_own_directory(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    writing = os.open(tmp_path / "pipe.yaml", os.O_RDWR)
    os.write(writing, b"0123456789")
    try:
        assert keep_piped(tmp_path / "pipe.yaml", 4) == tmp_path / "pipe.yaml"
        assert read_piped(tmp_path / "pipe.yaml", 4) == b"01234"
    finally:
        os.close(writing)


def test_a_socket_may_stand_in_for_standard_input() -> None:
    ours, theirs = socket.socketpair()
    kept = os.dup(0)
    try:
        theirs.sendall(b"x")
        theirs.close()
        os.dup2(ours.fileno(), 0)
        with open_named(STANDARD_INPUT) as stream:
            assert stream.read() == b"x"
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        ours.close()
