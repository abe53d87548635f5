"""A soak goes on with runs of the same code only: its key covers all of the harness, wherever the command lies."""

from __future__ import annotations

from pathlib import Path

import chaos
from chaos.cli.soak.cells import PACKAGE


def test_the_key_covers_the_whole_package() -> None:
    assert Path(chaos.__file__).parent == PACKAGE
