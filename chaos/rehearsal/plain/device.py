"""The device layer of a job in plain Python: its collectives, its memory, and the agent's view of its training.

The agent loads it into every process of the job, like the device layer of a MindSpore rehearsal.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy

from chaos.agent.start import Agent
from chaos.rehearsal import finished_ranks
from chaos.rehearsal.device.interconnect import Fabric
from chaos.rehearsal.device.memory import Memory
from chaos.rehearsal.in_rank import storage
from chaos.rehearsal.in_rank.alterations import Alterations
from chaos.rehearsal.in_rank.spikes import Spikes


def install(agent: Agent) -> None:
    """Give a rank its device; an extension of the agent."""
    if agent.place.rank is None:
        return
    device = PlainDevice(agent)
    agent.imports.watch("chaos.rehearsal.plain.machine", device.plug)
    # MindIO TFT asks MindSpore for the number of its device when a processor is made, and for nothing else.
    stub = ModuleType("mindspore")
    stub.context = SimpleNamespace(get_context=lambda key: device.rank)  # type: ignore[attr-defined]
    sys.modules.setdefault("mindspore", stub)
    # The code that switches the network looks for MindSpore's function.
    management = ModuleType("mindspore.communication.management")
    management._comm_switch_nic = device.switch_network  # type: ignore[attr-defined]
    sys.modules.setdefault("mindspore.communication.management", management)


class PlainDevice(Fabric):
    """One rank's device."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        assert agent.barriers is not None and agent.digests is not None and agent.training is not None
        self.training = agent.training
        self.rank, self.ranks = self._rank, self._ranks
        self._digests = agent.digests
        self._spikes = Spikes(agent.barriers, self._record)
        self._memory = Memory(agent.barriers, numpy.copyto)
        self.alterations = Alterations(agent.barriers, self._record, numpy.copyto)

    def plug(self, module: ModuleType) -> None:
        """Become the device that the job finds on its machine."""
        module.device = lambda: self  # type: ignore[attr-defined]

    def average(self, gradients: Any, members: Collection[int]) -> Any:
        """Return the mean of flat gradients over these ranks."""
        self.training.reach("allreduce.enter")
        share = 1.0 / len(members)
        altered = self._spikes.apply(gradients, lambda like: self.awaited(like, members), share=share)
        altered = self.alterations.gradient(altered)
        mean = self.reduce(altered, members) * numpy.asarray(share, altered.dtype)
        self._digests.gradients = mean
        return mean

    def update_begins(self) -> None:
        """Note that the optimizer begins to write."""
        self._memory.update_begins()
        self.training.reach("optimizer.update")

    def update_ends(self) -> None:
        """Note that the optimizer has written all of the step."""
        self._memory.update_ends()

    def update_times(self) -> list[int]:
        """Return when a memory error happened, when the optimizer's update began and when it ended.

        In microseconds.
        """
        return self._memory.timestamps()

    def memory_strategy(self) -> str:
        """Return the loss by a memory error: ``RS_UCE_HIGHLEVEL`` or ``RS_UCE_LOWLEVEL``."""
        return self._memory.strategy()

    def copy(self, parameters: Iterable[Any], source: int, target: int) -> None:
        """Copy parameters from one rank to another; both ranks call this."""
        for parameter in parameters:
            if self.rank == source:
                self.join().send(target, parameter)
            else:
                numpy.copyto(parameter, self.join().receive(source, parameter))

    def create(self, path: str) -> Any:
        """Return a file on this machine's storage, to be written."""
        return storage.create(self._agent, path)

    def open(self, path: str) -> Any:
        """Return a file on this machine's storage, to be read."""
        return storage.open_recorded(self._agent, path)

    def tell_trained(self) -> None:
        """Report that this rank has trained to its end; an outside host of the controller waits for that."""
        finished_ranks.note(finished_ranks.TRAINED, self.rank)

    def tell_exiting(self) -> None:
        """Report that this rank was ordered to exit."""
        finished_ranks.note(finished_ranks.EXITING, self.rank)
