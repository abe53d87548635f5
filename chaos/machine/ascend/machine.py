"""The machine that a rank runs on, as far as device faults need it: the vendor's tools, the rank's variables."""

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
        """The runner of the vendor's tools on that machine."""

    def variables(self, identity: ProcessIdentity) -> Mapping[str, str] | None:
        """Return the variables of a rank's process that name its device; None where the process has ended.

        Other variables may be among them.
        """


@dataclass(frozen=True)
class ThisMachine:
    """The harness's own machine."""

    commands: Commands = field(default_factory=SystemCommands)

    def variables(self, identity: ProcessIdentity) -> Mapping[str, str] | None:
        """Return the environment that the process was started with."""
        return environment(identity.pid)
