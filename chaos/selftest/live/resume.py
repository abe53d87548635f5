"""Defects of the restarted job: the state that it does not restore, and the place from which it goes on."""

from __future__ import annotations

import os
from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import RESUME, is_moment, replaces

_SERIALIZATION = "mindspore.train.serialization"


def _without(agent: Agent, unwanted: Any) -> None:
    """Load everything but the parameters whose name is unwanted."""

    @replaces(agent, _SERIALIZATION, "load_param_into_net")
    def load(original: Any, net: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
        kept = {name: parameter for name, parameter in parameters.items() if not unwanted(name)}
        if len(kept) < len(parameters):
            acted(agent, f"not restored: {', '.join(sorted(parameters.keys() - kept.keys()))}")
        return original(net, kept, *args, **kwargs)


def global_step_lost(agent: Agent) -> None:
    """Leave the optimizer's step counter unrestored."""
    if agent.configuration.attempt == RESUME:
        _without(agent, lambda name: name == "global_step")


def moments_lost(agent: Agent) -> None:
    """Leave the optimizer's moments unrestored."""
    if agent.configuration.attempt == RESUME:
        _without(agent, is_moment)


def one_weight_lost(agent: Agent) -> None:
    """Leave one weight of rank 1 alone unrestored."""
    if agent.configuration.attempt == RESUME and agent.place.rank == 1:
        _without(agent, lambda name: name == "layer3.bias")


def schedule_from_its_beginning(agent: Agent) -> None:
    """Let the learning rate fall from its first value again, though the step counter is restored."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, "mindspore.nn.optim.optimizer", "_IteratorLearningRate.construct")
    def construct(original: Any, self: Any, step: Any) -> Any:
        if not hasattr(self, "first_step"):
            self.first_step = step.asnumpy().copy()
        if self.first_step.any():
            acted(agent, "the learning rate is that of an earlier step")
        from mindspore import Tensor

        return original(self, step - Tensor(self.first_step))


def _data_beside(agent: Agent, place: Any) -> None:
    @replaces(agent, "mindspore.dataset.engine.datasets", "Dataset.set_init_step")
    def set_init_step(original: Any, self: Any, step: int) -> None:
        if place(step) != step:
            acted(agent, f"the data begins behind step {place(step)}, not {step}")
        original(self, place(step))


def data_from_its_beginning(agent: Agent) -> None:
    """Read the data from its first batch again."""
    if agent.configuration.attempt == RESUME:
        _data_beside(agent, lambda step: 0)


def batch_skipped(agent: Agent) -> None:
    """Leave out the first batch after the resume."""
    if agent.configuration.attempt == RESUME:
        _data_beside(agent, lambda step: step + 1)


def batch_twice(agent: Agent) -> None:
    """Train the last batch before the resume a second time."""
    if agent.configuration.attempt == RESUME:
        _data_beside(agent, lambda step: step - 1)


def shards_swapped(agent: Agent) -> None:
    """Let each of two ranks read the other's share of the data."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, "mindspore.dataset.engine.datasets_vision", "MnistDataset.__init__")
    def begin(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        acted(agent, f"part {1 - kwargs['shard_id']} of the data is read, not {kwargs['shard_id']}")
        original(self, *args, **{**kwargs, "shard_id": 1 - kwargs["shard_id"]})


def older_checkpoint(agent: Agent) -> None:
    """Let a job that goes on from periodic checkpoints take the newest for unreadable."""
    if agent.place.rank is None:
        return

    @replaces(agent, _SERIALIZATION, "load_checkpoint")
    def load(original: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path).endswith("_4.ckpt"):
            acted(agent, f"{path} is taken for unreadable")
            raise ValueError("a seeded defect")
        return original(path, *args, **kwargs)


def from_the_beginning(agent: Agent) -> None:
    """Let a job that goes on from periodic checkpoints take all of them for unreadable, and train from the start."""
    if agent.place.rank is None:
        return

    @replaces(agent, _SERIALIZATION, "load_checkpoint")
    def load(original: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        acted(agent, f"{path} is taken for unreadable")
        raise ValueError("a seeded defect")


def unprotected(agent: Agent) -> None:
    """Start the job again without fault tolerance: the next fault would be its end."""
    if agent.configuration.attempt == RESUME and agent.place.rank is not None:
        acted(agent, f"MS_ENABLE_TFT is {{TTP:0}}, not {os.environ.get('MS_ENABLE_TFT')}")
        os.environ["MS_ENABLE_TFT"] = "{TTP:0}"
        replaces(agent, "chaos.rehearsal.finished_ranks", "note")(lambda original, *args: original(*args))
