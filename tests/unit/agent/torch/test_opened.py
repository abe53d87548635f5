"""The files that a process opens for writing are known, since one of them may get the bytes of a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.torch.saves.opened import OpenedFiles


@pytest.fixture(scope="module")
def opened() -> OpenedFiles:
    """A hook of Python's audit stays until the process ends, so that all tests share one."""
    files = OpenedFiles()
    files.watch()
    return files


def by_descriptor(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))


@pytest.mark.parametrize(
    "write", [lambda path: path.write_bytes(b""), lambda path: path.open("ab").close(), by_descriptor]
)
def test_a_file_that_is_opened_for_writing_is_known_once(
    opened: OpenedFiles, tmp_path: Path, write: Callable[[Path], Any]
) -> None:
    opened.take()
    write(tmp_path / "a.pt")
    write(tmp_path / "a.pt")
    assert opened.take() == [str(tmp_path / "a.pt")]
    assert opened.take() == []


def test_a_file_that_is_read_is_not_among_them(opened: OpenedFiles, tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"")
    opened.take()
    (tmp_path / "a.pt").read_bytes()
    assert opened.take() == []


def test_of_very_many_files_only_some_are_kept(opened: OpenedFiles, tmp_path: Path) -> None:
    opened.take()
    for number in range(100):
        (tmp_path / str(number)).write_bytes(b"")
    assert len(opened.take()) < 100
