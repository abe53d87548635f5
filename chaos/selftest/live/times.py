"""Defects of time: a phase of the recovery is over its budget."""

from __future__ import annotations

import time
from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import replaces

_BUDGET_SECONDS = 8.0
"""Budget of each of these phases in the base scenario live-uce."""
_OVER_SECONDS = 4.0
"""Excess beyond what a busy machine may excuse: only the time for which the job waited for a processor."""


def late_detection(agent: Agent) -> None:
    """Let the controller believe the ranks' reports 4 s after the budget is over."""
    first: list[float] = []

    @replaces(agent, "chaos.rehearsal.ttp.controller", "Controller._abnormal")
    def abnormal(original: Any, self: Any) -> bool:
        if not self._abnormal_members():
            return False
        first.append(time.monotonic())
        if (left := first[0] + _BUDGET_SECONDS + _OVER_SECONDS - time.monotonic()) > 0:
            acted(agent, f"what the ranks report is believed {left:.3f} s later")
            self._closing.wait(left)
        return bool(original(self))


def late_repair(agent: Agent) -> None:
    """Let the controller release the ranks 4 s after the budget of the repair is over."""

    @replaces(agent, "chaos.rehearsal.ttp.retry", "Retry._repair")
    def repair(original: Any, self: Any, *args: Any) -> None:
        began = time.monotonic()
        original(self, *args)
        left = max(0.0, began + _BUDGET_SECONDS + _OVER_SECONDS - time.monotonic())
        if left:
            acted(agent, f"the ranks go on {left:.3f} s later")
        time.sleep(left)
