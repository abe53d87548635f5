"""What ``npu-smi set -t reset`` answers. Documented: no exception, whatever it is."""

from __future__ import annotations

from pathlib import Path

from chaos.machine.ascend.reset import FAIL, OK, read_reset
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it."""
    del folder
    assert read_reset(content.decode("utf-8", "replace")) in (None, OK, FAIL)


TARGET = Target("npu_smi_reset", mutate_bytes, check)
