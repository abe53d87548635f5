"""Defects of the protection after a recovery: the job trains on, and would not survive the next fault."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import replaces

_TOLERANCE = "chaos.rehearsal.plain.tolerance"


def updates_not_reported(agent: Agent) -> None:
    """Keep rank 1 from reporting updates to the SDK after the repair."""
    if agent.place.rank != 1:
        return
    repaired: list[int] = []

    @replaces(agent, _TOLERANCE, "Tolerance.recover")
    def recover(original: Any, self: Any, error: RuntimeError) -> int:
        repaired.append(int(original(self, error)))
        return repaired[-1]

    @replaces(agent, _TOLERANCE, "Tolerance.end_step")
    def end_step(original: Any, self: Any) -> None:
        if not repaired:
            original(self)
            return
        acted(agent, "the update is not reported")
        self._state.parameters["tft_g_one_flag"][...] = 1
