"""CONTRIBUTING.md names files and commands that are there."""

from __future__ import annotations

import re

from chaos import bootstrap
from tests.documents.blocks import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_layout_has_every_directory_of_tests() -> None:
    rows = re.findall(r"^\| `tests/(\w+)/", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(path.name for path in (ROOT / "tests").iterdir() if any(path.rglob("*.py")))


def test_every_path_that_is_named_is_there() -> None:
    paths = set(re.findall(r"`((?:chaos|tests|scenarios|docs|changelog\.d|\.ci)/[\w./-]*)`", PAGE))
    assert len(paths) > 40
    assert sorted(path for path in paths if "NAME" not in path and not (ROOT / path).exists()) == []


def test_the_checks_of_the_whole_set_are_named() -> None:
    for _, (program, *arguments) in bootstrap.PHASES[:3]:
        assert f"`{' '.join([program, *arguments])}`" in PAGE
    assert "`python3.11 chaos/bootstrap.py quick`" in PAGE and bootstrap.quick_phases([])


def test_every_registry_of_the_project_is_named() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    groups = re.findall(r'^\[project\.entry-points\."(chaos\.\w+)"\]$', project, re.MULTILINE)
    assert len(groups) >= 4
    assert [group for group in groups if f"`{group}`" not in PAGE] == []
