"""Which device a rank trains on, and the proof of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chaos.machine.ascend.mapping import MappedChip
from chaos.machine.ascend.table import Table
from chaos.machine.ascend.tools import AscendTools

LOGICAL = ("ASCEND_DEVICE_ID", "DEVICE_ID")
"""Variables that name a rank's logical device; msrun sets DEVICE_ID."""

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
"""The list of a rank's visible devices: where it is set, logical device 0 is its first entry."""


class NoDevice(RuntimeError):
    """The device of a rank cannot be determined. The text says what was seen."""


@dataclass(frozen=True)
class Device:
    """A chip: ``npu`` and ``chip`` as npu-smi counts, ``logic`` as a process does, ``card`` as hccn_tool does."""

    npu: int
    chip: int
    logic: int
    card: int

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"NPU {self.npu} chip {self.chip} (device {self.logic}, card {self.card} of hccn_tool)"


def device_of(rank: int, pid: int, environment: Mapping[str, str] | None, tools: AscendTools) -> Device:
    """Return the chip that a rank's process trains on.

    The device named by its environment must agree with npu-smi, which lists the process on that chip. A rank opens a
    context on other chips too, so the list alone decides only where it has a single chip. Raises NoDevice, and what the
    tools raise.
    """
    mapping, table = tools.mapping(), tools.table()
    listed = {(process.npu, process.chip) for process in table.processes if process.pid == pid}
    if not listed:
        raise NoDevice(f"npu-smi info lists process {pid} of rank {rank} on no chip, so no card was touched")
    named = _named(rank, environment or {})
    chips = [row for row in mapping if (row.npu, row.chip) in listed] if named is None else _with_logic(mapping, named)
    if named is None and len(chips) != 1:
        raise NoDevice(
            f"process {pid} of rank {rank} is on {_places(listed)}, and no variable ({', '.join(LOGICAL)}) says which "
            "of them it trains on"
        )
    if not chips:
        raise NoDevice(f"rank {rank} names device {named}, which npu-smi info -m does not list")
    chip = chips[0]
    if (chip.npu, chip.chip) not in listed:
        raise NoDevice(
            f"rank {rank} names device {named}, NPU {chip.npu} chip {chip.chip}, but npu-smi info lists its process "
            f"{pid} on {_places(listed)}"
        )
    return Device(chip.npu, chip.chip, chip.logic, _card(chip, mapping, table))


def _named(rank: int, environment: Mapping[str, str]) -> int | None:
    """Return the logical device that the environment names, looked up among the visible ones.

    None where it names none.
    """
    text = next((environment[name] for name in LOGICAL if environment.get(name)), None)
    if text is None:
        return None
    visible = environment.get(VISIBLE)
    parts = [text] if not visible else visible.split(",")
    numbers = [int(part) for part in (text, *parts) if part.isascii() and part.isdecimal() and len(part) < 6]
    if len(numbers) != len(parts) + 1 or (visible and numbers[0] >= len(parts)):
        raise NoDevice(f"rank {rank} has the device {text!r}, {VISIBLE}={visible!r}: no number of a device follows")
    return numbers[1 + numbers[0]] if visible else numbers[0]


def _with_logic(mapping: tuple[MappedChip, ...], logic: int) -> list[MappedChip]:
    return [chip for chip in mapping if chip.logic == logic]


def _card(chip: MappedChip, mapping: tuple[MappedChip, ...], table: Table) -> int:
    """Return the card's number for hccn_tool: the physical ID.

    Where no tool shows the physical ID, it is the NPU's number, if the NPU has a single chip.
    """
    listed = next((row.physical for row in table.chips if (row.npu, row.chip) == (chip.npu, chip.chip)), None)
    if chip.physical is not None and listed is not None and chip.physical != listed:
        raise NoDevice(f"NPU {chip.npu} chip {chip.chip} is card {chip.physical} and card {listed}: npu-smi disagrees")
    physical = chip.physical if chip.physical is not None else listed
    if physical is not None:
        return physical
    if sum(row.npu == chip.npu for row in mapping) > 1:
        raise NoDevice(f"NPU {chip.npu} has several chips, and npu-smi tells no physical number of chip {chip.chip}")
    return chip.npu


def _places(listed: set[tuple[int, int]]) -> str:
    return ", ".join(f"NPU {npu} chip {chip}" for npu, chip in sorted(listed))
