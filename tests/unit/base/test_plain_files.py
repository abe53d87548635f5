"""Plain files only: what blocks, never ends, leads elsewhere or is too large is refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.base.plain_files import UnreadableFile, open_plain, read_plain


def test_a_plain_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_plain(tmp_path / "a", 10) == b"x" * 10
    with open_plain(tmp_path / "a") as file:
        assert file.read(3) == b"xxx"


def test_anything_else_is_refused_and_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "device").symlink_to("/dev/zero")
    for path, why in (
        (tmp_path / "a", "larger than 10 bytes"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "pipe", "is not a plain file"),
        (tmp_path, "is not a plain file"),
        (Path("/dev/zero"), "is not a plain file"),
        (tmp_path / "link", "it is a link"),
        (tmp_path / "device", "it is a link"),
        (tmp_path / "nul\0", "not a usable file name"),
    ):
        with pytest.raises(UnreadableFile, match=why) as caught:
            read_plain(path, 10)
        assert str(path) in str(caught.value) and str(caught.value.strerror) in str(caught.value)
