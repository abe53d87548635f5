"""Defects of the fault itself: not made, made in another place, or again. The rank's own record is the evidence."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import replaces

_BARRIERS = "chaos.agent.barriers"
_CHANNEL = "chaos.agent.channel"
_RANK = 1
"""The rank that the base scenarios hit."""


def not_made(agent: Agent) -> None:
    """Let the rank ignore the order to raise an error."""

    @replaces(agent, _CHANNEL, "Channel.ask")
    def ask(original: Any, self: Any, message: Any) -> Any:
        answer = original(self, message)
        if not answer or answer.get("message") != "raise":
            return answer
        acted(agent, "the error is not raised")
        return {"message": "go"}


def one_step_late(agent: Agent) -> None:
    """Let the rank report the barrier when it is at that of the next step."""
    if agent.barriers is None:
        return
    barriers = agent.barriers
    barriers._armed = {
        (None if step is None else step + 1, phase): faults for (step, phase), faults in barriers._armed.items()
    }

    @replaces(agent, _CHANNEL, "Channel.ask")
    def ask(original: Any, self: Any, message: Any) -> Any:
        if message.get("message") == "barrier":
            acted(agent, f"step {message['step']} is said to be step {message['step'] - 1}")
            message = {**message, "step": message["step"] - 1}
        return original(self, message)


def wrong_rank(agent: Agent) -> None:
    """Raise the error in rank 0, and not in the rank that was ordered to."""
    if agent.barriers is None:
        return
    not_made(agent)
    made: list[str] = []

    @replaces(agent, _BARRIERS, "Barriers.reach")
    def reach(original: Any, self: Any, phase: str) -> None:
        original(self, phase)
        if agent.place.rank != _RANK and (self.step, phase) == (3, "allreduce.enter") and not made:
            made.append(phase)
            acted(agent, "the error is raised in this rank")
            _raise(self, {"fault": "uce", "text": "UCEError, a seeded defect"}, phase)


def raised_again(agent: Agent) -> None:
    """Raise the error a second time when its step is trained again."""
    orders: list[Any] = []

    @replaces(agent, _CHANNEL, "Channel.ask")
    def ask(original: Any, self: Any, message: Any) -> Any:
        answer = original(self, message)
        if answer and answer.get("message") == "raise":
            orders.append((message["step"], message["phase"], {**answer, "fault": message["fault"]}))
        return answer

    @replaces(agent, _BARRIERS, "Barriers.reach")
    def reach(original: Any, self: Any, phase: str) -> None:
        if orders and orders[0][:2] == (self.step, phase):
            acted(agent, "the error is raised once more")
            _raise(self, orders.pop()[2], phase)
        original(self, phase)


def _raise(barriers: Any, order: Any, phase: str) -> None:
    done = barriers.on_raise({**order, "phase": phase})
    barriers._record.write(
        "fault.raised", fault=order["fault"], step=barriers.step, phase=phase, text=order["text"], **done
    )
    raise RuntimeError(order["text"])


def spike_too_small(agent: Agent) -> None:
    """Scale the gradients by half of the factor for the requested norm."""

    @replaces(agent, "chaos.rehearsal.in_rank.spikes", "_factor_for")
    def factor_for(original: Any, *args: Any) -> float:
        factor = float(original(*args))
        acted(agent, f"the gradients are scaled by {factor / 2}, not {factor}")
        return factor / 2


def spike_again(agent: Agent) -> None:
    """Scale the gradients a second time when the step is trained again."""

    @replaces(agent, "chaos.agent.barriers", "Barriers.take_alterations")
    def take(original: Any, self: Any) -> Any:
        taken = original(self)
        for record in taken:
            acted(agent, f"{record['fault']} is to be made once more")
        return [{**record, "repeat": 1} for record in taken]


def memory_not_lost(agent: Agent) -> None:
    """Let the memory error take nothing from the rank: a repair would prove nothing."""

    @replaces(agent, "chaos.rehearsal.device.memory", "Memory._lose")
    def lose(original: Any, self: Any) -> int:
        acted(agent, "no parameter is lost")
        return 0
