"""The vendor's tools, as far as faults need them: the chip that a process trains on, a card's network, its reset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from chaos.machine.ascend.hccn import read_link, read_net_health
from chaos.machine.ascend.mapping import MappedChip, read_mapping
from chaos.machine.ascend.reset import FAIL, read_reset
from chaos.machine.ascend.table import Table, read_table
from chaos.machine.linux.commands import CommandError, Commands, SystemCommands, quoted


@dataclass(frozen=True)
class Reset:
    """npu-smi's answer to a reset.

    ``status`` is None where no document shows the answer; ``said`` quotes it.
    """

    status: str | None
    said: str


@dataclass(frozen=True)
class AscendTools:
    """Calls ``npu-smi`` and ``hccn_tool``. All raise CommandError, and the readers of an answer UnreadableOutput.

    ``card`` is the number that ``hccn_tool -i`` takes: the physical ID. ``npu`` and ``chip`` are npu-smi's numbers.
    """

    commands: Commands = field(default_factory=SystemCommands)

    def mapping(self) -> tuple[MappedChip, ...]:
        """Return the chips that compute."""
        return read_mapping(self.commands("npu-smi", "info", "-m").checked())

    def table(self) -> Table:
        """Return cards, chips and processes."""
        return read_table(self.commands("npu-smi", "info").checked())

    def net_health(self, card: int) -> str:
        """Return the state of a card's network, in the vendor's words."""
        return read_net_health(self.commands("hccn_tool", "-i", str(card), "-net_health", "-g").checked())

    def link(self, card: int) -> Literal["UP", "DOWN"]:
        """Return the state of a card's link."""
        return read_link(self.commands("hccn_tool", "-i", str(card), "-link", "-g").checked())

    def take_link_down(self, card: int) -> None:
        """Take a card's link down. It stays down until :meth:`recover` is called."""
        self.commands("hccn_tool", "-i", str(card), "-link", "-s", "down").checked()

    def recover(self, card: int) -> None:
        """Restore a card's network to its configuration."""
        self.commands(*recovery(card)).checked()

    def reset(self, npu: int, chip: int) -> Reset:
        """Reset a chip, and confirm npu-smi's question.

        Raises CommandError where the reset fails, by the exit code or by the answer.
        """
        done = self.commands(*reset_command(npu, chip), answer="y\n")
        output = done.checked() + done.errors
        status = read_reset(output)
        if status == FAIL:
            raise CommandError(f"{done} did not reset the chip; it said {quoted(output.strip())}")
        return Reset(status, quoted(output.strip()))


def recovery(card: int) -> tuple[str, ...]:
    """Return the command that restores a card's network."""
    return ("hccn_tool", "-i", str(card), "-cfg", "recovery")


def health_command(card: int) -> tuple[str, ...]:
    """Return the command that shows the state of a card's network."""
    return ("hccn_tool", "-i", str(card), "-net_health", "-g")


def reset_command(npu: int, chip: int) -> tuple[str, ...]:
    """Return the command that resets a chip."""
    return ("npu-smi", "set", "-t", "reset", "-i", str(npu), "-c", str(chip))
