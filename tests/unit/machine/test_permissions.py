"""Directories that a fault closes and opens: all of them, or it is told that they are not all."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.base.walking import MAX_LEVELS, TooDeep, raise_too_deep
from chaos.machine.linux.permissions import directories_in
from tests.unit.conftest import MakeDeep


def test_a_directory_comes_before_those_in_it_and_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    assert list(directories_in(tmp_path)) == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


def test_whoever_closes_them_is_told_of_those_too_deep_and_whoever_opens_them_goes_on(
    tmp_path: Path, make_deep: MakeDeep
) -> None:
    make_deep(tmp_path / "storage")
    with pytest.raises(TooDeep):
        list(directories_in(tmp_path / "storage", raise_too_deep))
    assert len(list(directories_in(tmp_path / "storage"))) == MAX_LEVELS + 1
