"""The reader of ``npu-smi info``: the table of the cards, and the table of the processes on them.

Forms: a chip's second line begins with the chip alone, or with chip and physical ID (Phy-ID, 910C); newer drivers add
the process's ID in its container to the second table. Source: MindCluster's documents and reports of npu-smi 23.0 to
25.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.machine.ascend.unreadable import UnreadableOutput, number

COMMAND = "npu-smi info"
_TITLE = re.compile(r"npu-smi (\S+)\s+Version: (\S+)")
_IDLE = re.compile(r"No running processes found in NPU (\d{1,9})")
_PROCESS_HEADS = (
    ["NPU Chip", "Process id", "Process name", "Process memory(MB)"],
    ["NPU Chip", "Process id", "Process name", "Process memory(MB)", "Process id in container"],
)


@dataclass(frozen=True)
class ListedChip:
    """A chip of the first table.

    ``physical`` is None where the table shows none; ``health`` is OK, Warning, Alarm…
    """

    npu: int
    chip: int
    physical: int | None
    name: str
    health: str


@dataclass(frozen=True)
class ListedProcess:
    """A process of the second table, by its ID on the host."""

    npu: int
    chip: int
    pid: int


@dataclass(frozen=True)
class Table:
    """Both tables of ``npu-smi info``."""

    version: str
    chips: tuple[ListedChip, ...]
    processes: tuple[ListedProcess, ...]


def read_table(text: str) -> Table:
    """Read both tables, complete. Raises UnreadableOutput."""
    rows = [_cells(line) for line in text.splitlines() if line.strip() and not line.strip().startswith("+")]
    title = _TITLE.fullmatch(rows[0][0]) if rows and rows[0] else None
    if title is None:
        raise UnreadableOutput(COMMAND, "no table of npu-smi", text)
    heads = [index for index, row in enumerate(rows) if row and row[0] == "NPU Chip"]
    if len(heads) != 1 or rows[heads[0]] not in _PROCESS_HEADS:
        raise UnreadableOutput(COMMAND, "no table of the processes", text)
    chips = _chips(rows[1 : heads[0]])
    processes = _processes(rows[heads[0] + 1 :], chips, len(rows[heads[0]]))
    return Table(title[2], chips, processes)


def _chips(rows: list[list[str]]) -> tuple[ListedChip, ...]:
    if len(rows) < 2 or rows[0][:2] != ["NPU Name", "Health"] or rows[1][1:2] != ["Bus-Id"] or len(rows) % 2:
        raise UnreadableOutput(COMMAND, "no table of the cards", str(rows[:2]))
    heads = {"Chip": 1, "Chip Phy-ID": 2}
    numbers = heads.get(rows[1][0])
    if numbers is None:
        raise UnreadableOutput(COMMAND, "no known columns of a chip", rows[1][0])
    chips = []
    for first, second in zip(rows[2::2], rows[3::2], strict=True):
        card, chip = first[0].split(" "), second[0].split(" ")
        if len(first) < 2 or len(second) < 2 or len(card) != 2 or len(chip) != numbers:
            raise UnreadableOutput(COMMAND, "not the two lines of a chip", f"{first} {second}")
        physical = number(chip[1], COMMAND) if numbers == 2 else None
        chips.append(ListedChip(number(card[0], COMMAND), number(chip[0], COMMAND), physical, card[1], first[1]))
    if not chips or len({(row.npu, row.chip) for row in chips}) < len(chips):
        raise UnreadableOutput(COMMAND, "no chip, or one that is listed twice", str(rows))
    return tuple(chips)


def _processes(rows: list[list[str]], chips: tuple[ListedChip, ...], columns: int) -> tuple[ListedProcess, ...]:
    known = {(row.npu, row.chip) for row in chips}
    cards = {row.npu for row in chips}
    processes = []
    listed: set[int] = set()
    for row in rows:
        idle = _IDLE.fullmatch(row[0]) if len(row) == 1 else None
        if idle is not None and int(idle[1]) in cards:
            listed.add(int(idle[1]))
            continue
        place = row[0].split(" ")
        if len(row) != columns or len(place) != 2:
            raise UnreadableOutput(COMMAND, "not the line of a process", str(row))
        npu, chip, pid = (number(text, COMMAND) for text in (*place, row[1]))
        if (npu, chip) not in known:
            raise UnreadableOutput(COMMAND, "a process on a chip that is not listed", str(row))
        listed.add(npu)
        processes.append(ListedProcess(npu, chip, pid))
    if listed != cards:
        missing = ", ".join(map(str, sorted(cards - listed)))
        raise UnreadableOutput(COMMAND, f"nothing is said of the processes on NPU {missing}", str(rows))
    return tuple(processes)


def _cells(line: str) -> list[str]:
    """Return the cells of a line of the table, each inner gap reduced to one space.

    Raises UnreadableOutput.
    """
    text = line.strip()
    if len(text) < 2 or not (text.startswith("|") and text.endswith("|")):
        raise UnreadableOutput(COMMAND, "a line that is no line of a table", line)
    return [" ".join(cell.split()) for cell in text[1:-1].split("|")]
