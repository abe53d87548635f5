"""A node made from this host's Python can start it, wherever it lies."""

from __future__ import annotations

import sys
from pathlib import Path

from chaos.platforms.docker.image import borrowed, outermost


def test_the_python_behind_a_virtual_environment_is_borrowed_too(tmp_path: Path) -> None:
    environment, behind = tmp_path / "venv", tmp_path / "versions" / "3.11"
    environment.mkdir()
    behind.mkdir(parents=True)
    assert {environment, behind} <= set(borrowed((), (str(environment), str(behind))))


def test_the_python_that_runs_is_within_what_is_borrowed() -> None:
    program = Path(sys.executable).resolve()
    assert any(path in program.parents for path in borrowed()), program


def test_what_lies_in_another_directory_of_them_is_borrowed_once() -> None:
    assert outermost([Path("/a/b"), Path("/a"), Path("/c"), Path("/a")]) == (Path("/a"), Path("/c"))
