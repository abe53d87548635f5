"""Defects of the replacement of lost ranks (the agent's part)."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import replaces


def survivor_restarted(agent: Agent) -> None:
    """Let the cluster's agent take a healthy rank for lost, and start it again as well."""

    @replaces(agent, "chaos.rehearsal.taskd.dialogue", "Dialogue._moved_along")
    def moved_along(original: Any, self: Any) -> Any:
        if not self._faults:
            return original(self)
        acted(agent, "rank 1, which is healthy, is started again")
        return [1]


def restart_of_all(agent: Agent) -> None:
    """Let the job save a checkpoint and end, where the lost rank should have been replaced."""

    @replaces(agent, "chaos.rehearsal.ttp.strategies", "Possible.offered")
    def offered(original: Any, self: Any) -> Any:
        strategies = original(self)
        if "recover" in strategies:
            acted(agent, "recover is not offered")
        return tuple(strategy for strategy in strategies if strategy != "recover")


def restarted_twice(agent: Agent) -> None:
    """Let the cluster's agent kill all ranks and start them, and do so once more."""

    @replaces(agent, "chaos.rehearsal.taskd.agent", "ClusterAgent._lose")
    def lose(original: Any, self: Any, dead: Any) -> Any:
        code = original(self, dead)
        if code is None:
            acted(agent, "all ranks are killed and started once more")
            self._workers.end_all()
            self._start()
        return code
