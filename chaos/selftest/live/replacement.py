"""Defects of the replacement of lost ranks (the agent's part)."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.change import replaces


def survivor_restarted(agent: Agent) -> None:
    """The cluster's agent takes a healthy rank for lost, and starts it again as well."""

    @replaces(agent, "chaos.rehearsal.taskd.dialogue", "Dialogue._moved_along")
    def moved_along(original: Any, self: Any) -> Any:
        return [1] if self._faults else original(self)


def restart_of_all(agent: Agent) -> None:
    """The job saves a checkpoint and ends, where the lost rank should have been replaced."""

    @replaces(agent, "chaos.rehearsal.ttp.strategies", "Possible.offered")
    def offered(original: Any, self: Any) -> Any:
        return tuple(one for one in original(self) if one != "recover")


def restarted_twice(agent: Agent) -> None:
    """The cluster's agent kills all ranks and starts them, and does so once more."""

    @replaces(agent, "chaos.rehearsal.taskd.agent", "ClusterAgent._lose")
    def lose(original: Any, self: Any, dead: Any) -> Any:
        code = original(self, dead)
        if code is None:
            self._workers.end_all()
            self._start()
        return code
