"""A soak goes on with runs of the same code only: its key covers all of the harness, wherever the command lies."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import chaos
from chaos.cli import soak_kills
from chaos.cli.commands import soak


@pytest.mark.parametrize("module", [soak, soak_kills], ids=["soak", "soak --kill"])
def test_the_key_covers_the_whole_package(module: ModuleType) -> None:
    assert Path(chaos.__file__).parent == module._PACKAGE
