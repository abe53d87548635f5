"""Defects of the options that shorten a recovery: an option is not used, and the recovery is good all the same."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import RESUME, replaces


def memory_not_used(agent: Agent) -> None:
    """Hide from the restarted job the store that keeps its checkpoint in memory."""
    if agent.configuration.attempt != RESUME or agent.place.rank is None:
        return

    @replaces(agent, "mindio_acp", "initialize")
    def initialize(original: Any, *args: Any, **kwargs: Any) -> int:
        acted(agent, "the store in memory is not found")
        return 1


def watchdog_asleep(agent: Agent) -> None:
    """Leave the watchdog of collective communication off: the collective's timeout finds the error."""

    # The function, not the method that calls it: the device layer has bound that before a defect is put in.
    @replaces(agent, "chaos.rehearsal.device.interconnect", "start_watchdog")
    def start_watchdog(original: Any, *args: Any) -> None:
        acted(agent, "the watchdog is not started")
