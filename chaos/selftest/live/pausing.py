"""Defects of a pause."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import replaces

_PAUSE = "chaos.rehearsal.ttp.pause"
_SECONDS = 1.6


def rank_skipped(agent: Agent) -> None:
    """Let rank 1 report that it is paused, and train on."""
    if agent.place.rank != 1:
        return

    @replaces(agent, "chaos.rehearsal.ttp.processor", "Processor._pause")
    def pause(original: Any, self: Any, step: int) -> None:
        acted(agent, f"the pause after step {step} is not made")
        self.pause_point.release()
        self._reply("pause", result=0)


def too_short(agent: Agent) -> None:
    """Let the ranks go on before they are ordered to."""

    @replaces(agent, _PAUSE, "Pausing._wait")
    def wait(original: Any, self: Any, deadline: float) -> Any:
        self._closing.wait(_SECONDS)
        if not self._go_on.is_set():
            acted(agent, "the ranks go on before they are told to")
        self._go_on.set()
        return original(self, deadline)


def _while_paused(agent: Agent, mutate: Any) -> None:
    """Mutate the parameters, ``name`` and array, while this rank is paused."""
    if agent.place.rank is None:
        return

    @replaces(agent, _PAUSE, "PausePoint.release")
    def release(original: Any, self: Any) -> None:
        if self._blocked is not None:
            from mindspore import Tensor

            assert agent.barriers is not None
            for name, parameter in agent.barriers.parameters:
                array = parameter.asnumpy().copy()
                mutate(name, array)
                if (array != parameter.asnumpy()).any():
                    acted(agent, f"{name} is changed while the training is paused")
                parameter.set_data(Tensor(array))
        original(self)


def counter_moved(agent: Agent) -> None:
    """Advance the optimizer's step counter by one after the pause, so that the last step is left out."""

    def mutate(name: str, array: Any) -> None:
        if name == "global_step":
            array += 1

    _while_paused(agent, mutate)


def weight_changed(agent: Agent) -> None:
    """Change one bit of one weight of rank 1 during the pause."""

    def mutate(name: str, array: Any) -> None:
        if name == "layer3.weight" and agent.place.rank == 1:
            array.reshape(-1).view("uint32")[7] ^= 1

    _while_paused(agent, mutate)


def downgraded(agent: Agent) -> None:
    """Pause no rank: the order is accepted and forgotten."""

    @replaces(agent, _PAUSE, "Pausing.request")
    def request(original: Any, self: Any, seconds: float) -> None:
        acted(agent, "the order to pause is forgotten")
