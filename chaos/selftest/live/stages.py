"""Defects of a pipeline in plain Python that is started again."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import RESUME, replaces

_CHECKPOINTS = "chaos.rehearsal.plain.checkpoints"
_FABRIC = "chaos.rehearsal.device.interconnect"


def stage_of_another_step(agent: Agent) -> None:
    """Restore the last stage from the save before, under the step of the other stage."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _CHECKPOINTS, "Checkpoints._load")
    def load(original: Any, self: Any, path: str) -> Any:
        if not self._mesh.last_stage:
            return original(self, path)
        steps = self._periodic_steps(self._mesh.replicas)
        newest = max(steps)
        older = max(step for step in steps if step < newest)
        original(self, steps[older])
        self._state.parameters["global_step"][...] = newest
        acted(agent, f"the state of step {older} goes on as that of step {newest}")
        return newest


def stage_begins_earlier(agent: Agent) -> None:
    """Let the last stage go on from the save before, and count its steps from there."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _CHECKPOINTS, "Checkpoints.load_newest_periodic")
    def load(original: Any, self: Any) -> Any:
        steps = self._periodic_steps(self._mesh.replicas)
        if not self._mesh.last_stage:
            return original(self)
        acted(agent, f"the checkpoint of step {max(steps)} is given up by this stage alone")
        return self._load(steps[max(step for step in steps if step < max(steps))])


def slices_swapped(agent: Agent) -> None:
    """Let each rank of a stage load the file of the other slice."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _CHECKPOINTS, "Checkpoints._load")
    def load(original: Any, self: Any, path: str) -> Any:
        own, other = self._mesh.rank, self._mesh.rank ^ 1
        acted(agent, f"the file of rank {other} is loaded")
        return original(self, path.replace(f"rank_{own}", f"rank_{other}"))


def slices_swapped_in_memory(agent: Agent) -> None:
    """Let each rank of a stage load its own file, and exchange the slices of a weight afterwards."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _CHECKPOINTS, "Checkpoints._load")
    def load(original: Any, self: Any, path: str) -> Any:
        step = original(self, path)
        other = self._mesh.rank ^ 1
        name = "layer2.weight" if self._mesh.last_stage else "layer1.weight"
        self._device.send(other, self._state.parameters[name].copy())
        self._state.parameters[name][...] = self._device.receive(other, self._state.parameters[name])
        acted(agent, f"{name} is that of rank {other}")
        return step


def losses_lost(agent: Agent) -> None:
    """Let no rank of the last stage know its loss any more."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, "chaos.agent.training", "Training.step_end")
    def step_end(original: Any, self: Any, outputs: Any, batch: Any) -> None:
        if outputs is not None:
            acted(agent, "the loss is not known")
        original(self, None, batch)


def activations_of_the_step_before(agent: Agent) -> None:
    """Let the first stage send what it sent in the step before."""
    if agent.configuration.attempt != RESUME:
        return
    sent: list[Any] = []

    @replaces(agent, _FABRIC, "Fabric.send")
    def send(original: Any, self: Any, other: int, array: Any) -> None:
        if other < self._rank:
            original(self, other, array)  # gradients, of the last stage
            return
        sent.append(array)
        if len(sent) > 1:
            acted(agent, "the activations are those of the step before")
        original(self, other, sent[max(0, len(sent) - 2)])


def gradients_not_sent_back(agent: Agent) -> None:
    """Let the last stage send back half of the gradients: its own losses of that step are right."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _FABRIC, "Fabric.send")
    def send(original: Any, self: Any, other: int, array: Any) -> None:
        if other > self._rank:
            original(self, other, array)
            return
        acted(agent, "half of the gradients are zero")
        halved = array.copy()
        halved[:, ::2] = 0
        original(self, other, halved)
