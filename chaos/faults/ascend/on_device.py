"""The common part of faults of a device: the card of each rank, and errors of the tools as a missed fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from chaos.faults.kind import FaultMissed, Victim
from chaos.machine.ascend.device import Device, NoDevice, device_of
from chaos.machine.ascend.machine import RankMachine
from chaos.machine.ascend.tools import AscendTools
from chaos.machine.ascend.unreadable import UnreadableOutput
from chaos.machine.linux.commands import CommandError
from chaos.machine.linux.process import ProcessIdentity

NEEDS = ("npu", "hccn_tool", "root")
"""Probes that must succeed: the tools, and the right to use them."""

NEEDS_SCENARIO = "may disturb more than the job, so a scenario has to allow it by name"
"""The reason why such a fault is not made in a job that runs already."""


@dataclass
class Cards:
    """The cards of ranks, each looked up once: when it is hit, npu-smi may not list its process any more.

    ``machine`` is that of all ranks; None: each rank's own.
    """

    machine: RankMachine | None = None
    _known: dict[ProcessIdentity, Device] = field(default_factory=dict)

    def of(self, victim: Victim) -> Device:
        """Return the card that this rank trains on. Raises FaultMissed where there is no proof of it."""
        if victim.identity not in self._known:
            with tool_errors():
                variables = (self.machine or victim.machine).variables(victim.identity)
                self._known[victim.identity] = device_of(
                    victim.rank, victim.identity.pid, variables, self.tools(victim)
                )
        return self._known[victim.identity]

    def tools(self, victim: Victim) -> AscendTools:
        """Return the vendor's tools on the rank's machine."""
        return AscendTools((self.machine or victim.machine).commands)


def place_of(victim: Victim) -> dict[str, int]:
    """Return the node of a rank, for undo steps; nothing where there is one machine."""
    return {} if victim.identity.node is None else {"node": victim.identity.node}


def on_node(victim: Victim) -> str:
    """Return the place of a rank's card, as the end of a sentence; nothing where there is one machine."""
    return "" if victim.identity.node is None else f" on the host of node {victim.identity.node}"


@contextmanager
def tool_errors() -> Iterator[None]:
    """Turn a tool's failure, or an answer that nobody knows, into a missed fault, in the tool's own words."""
    try:
        yield
    except (CommandError, UnreadableOutput, NoDevice) as error:
        raise FaultMissed(str(error)) from error
