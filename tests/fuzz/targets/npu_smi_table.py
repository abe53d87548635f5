"""What ``npu-smi info`` prints. Documented: UnreadableOutput."""

from __future__ import annotations

from pathlib import Path

from chaos.machine.ascend.table import read_table
from chaos.machine.ascend.unreadable import UnreadableOutput
from tests.fuzz.mutate import mutate_lines
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it."""
    del folder
    try:
        table = read_table(content.decode("utf-8", "replace"))
    except UnreadableOutput as error:
        assert "npu-smi info" in str(error) and len(str(error)) < 2000
        return
    places = {(row.npu, row.chip) for row in table.chips}
    assert len(places) == len(table.chips) > 0
    assert all((process.npu, process.chip) in places for process in table.processes)


TARGET = Target("npu_smi_table", mutate_lines, check)
