"""What ``npu-smi info -m`` prints. Documented: UnreadableOutput."""

from __future__ import annotations

from pathlib import Path

from chaos.machine.ascend.mapping import read_mapping
from chaos.machine.ascend.unreadable import UnreadableOutput
from tests.fuzz.mutate import mutate_lines
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it."""
    del folder
    try:
        chips = read_mapping(content.decode("utf-8", "replace"))
    except UnreadableOutput as error:
        assert "npu-smi info -m" in str(error) and len(str(error)) < 2000
        return
    assert chips and len({chip.logic for chip in chips}) == len(chips)
    assert all(chip.name != "Mcu" and chip.npu >= 0 for chip in chips)


TARGET = Target("npu_smi_mapping", mutate_lines, check)
