"""The reader of ``npu-smi info -m``: the card and chip of each logical device.

Columns by driver: NPU ID, Chip ID, Chip Logic ID, Chip Name (910, 910B); with Chip Phy-ID before the name (910C). A
management unit (Mcu) has a dash for its number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.machine.ascend.unreadable import UnreadableOutput, number

COMMAND = "npu-smi info -m"
_COLUMNS = (
    ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Name"),
    ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Phy-ID", "Chip Name"),
)
_GAP = re.compile(r"\s{2,}|\t")
_MANAGEMENT = "Mcu"


@dataclass(frozen=True)
class MappedChip:
    """A chip that computes.

    ``logic`` is its number within a process; ``physical`` is None where the driver shows none.
    """

    npu: int
    chip: int
    logic: int
    physical: int | None
    name: str


def read_mapping(text: str) -> tuple[MappedChip, ...]:
    """Return the chips that compute, in the order of the listing. Raises UnreadableOutput."""
    lines = [line for line in text.splitlines() if line.strip()]
    columns = tuple(_cells(lines[0])) if lines else ()
    if columns not in _COLUMNS:
        raise UnreadableOutput(COMMAND, "no known columns", text)
    chips = [chip for line in lines[1:] if (chip := _chip(line, len(columns))) is not None]
    logics = [chip.logic for chip in chips]
    places = [(chip.npu, chip.chip) for chip in chips]
    if not chips or len({*logics}) < len(chips) or len({*places}) < len(chips):
        raise UnreadableOutput(COMMAND, "no chip, or one that is listed twice", text)
    return tuple(chips)


def _chip(line: str, columns: int) -> MappedChip | None:
    cells = _cells(line)
    if len(cells) != columns:
        raise UnreadableOutput(COMMAND, "a line without the columns of its head", line)
    if cells[-1] == _MANAGEMENT:
        return None
    npu, chip, logic, *physical = (number(cell, COMMAND) for cell in cells[:-1])
    return MappedChip(npu, chip, logic, physical[0] if physical else None, cells[-1])


def _cells(line: str) -> list[str]:
    return [cell for cell in _GAP.split(line.strip()) if cell]
