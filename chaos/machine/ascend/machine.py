"""The machine that a rank runs on, as far as faults of its device need it: the vendor's tools, the rank's variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from chaos.machine.linux.commands import Commands, SystemCommands
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.linux.procfs import environment


class RankMachine(Protocol):
    """A machine with ranks on it."""

    @property
    def commands(self) -> Commands:
        """Runs the vendor's tools there."""

    def variables(self, identity: ProcessIdentity) -> Mapping[str, str] | None:
        """The variables of a rank's process that name its device, others may be among them; None where it has ended."""


@dataclass(frozen=True)
class ThisMachine:
    """The one that the harness runs on."""

    commands: Commands = field(default_factory=SystemCommands)

    def variables(self, identity: ProcessIdentity) -> Mapping[str, str] | None:
        """Return the environment that the process was started with."""
        return environment(identity.pid)
