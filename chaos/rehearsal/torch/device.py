"""The device layer of a job of PyTorch on a CPU: its collectives, its memory, and the calls of torch_npu.

The agent loads it into every process of the job. The backend ``hccl`` is a process group in Python over the
rehearsal's communicator: a peer's death does not end a collective, an order to stop does, and sums are the same bits
every time. Everything else that the job runs is PyTorch's.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any, Callable

from chaos.agent.start import Agent
from chaos.rehearsal import finished_ranks
from chaos.rehearsal.device.interconnect import Fabric
from chaos.rehearsal.device.memory import HIGH_LEVEL, LOW_LEVEL, Memory
from chaos.rehearsal.torch.process_group import process_group_class
from chaos.rehearsal.torch.texts import of_torch_npu

BACKEND = "hccl"

_SAID = {LOW_LEVEL: 2, HIGH_LEVEL: 3}
"""The device's judgement → the answer of ``check_uce_in_memory``; 1 where it knows of no memory to give back."""
_FAILED = 1


def install(agent: Agent) -> None:
    """Give a rank its device; an extension of the agent."""
    if agent.place.rank is None:
        return
    device = TorchDevice(agent)
    agent.imports.watch("torch.distributed.distributed_c10d", device.offer_backend)
    agent.imports.watch("torch_npu", device.plug)
    agent.imports.watch("chaos.rehearsal.torch.machine", device.offer)


class TorchDevice(Fabric):
    """One rank's device."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        assert agent.barriers is not None and agent.training is not None and agent.source is not None
        agent.source.lines = True  # the loop says where its steps begin and end
        self.training = agent.training
        self.rank, self.ranks = self._rank, self._ranks
        self._memory = Memory(agent.barriers, _set_tensor)
        agent.barriers.on_raise = self._suffer

    def offer_backend(self, module: ModuleType) -> None:
        """Offer the backend to ``init_process_group``."""
        module.Backend.register_backend(BACKEND, self._process_group, devices=["cpu"])

    def _process_group(self, store: Any, rank: int, size: int, timeout: Any) -> Any:
        del store, timeout
        self.join()
        return process_group_class()(rank, size, self)

    def plug(self, module: ModuleType) -> None:
        """Become the device that torch_npu calls, and that of ``torch.distributed.reinit_process_group``."""
        import torch

        for name, call in {
            "current_device": lambda: 0,
            "synchronize": lambda: None,
            "empty_cache": lambda: None,
            "stop_device": self._stop,
            "restart_device": lambda number: None,
            "check_uce_in_memory": lambda number: _SAID.get(self._memory.strategy(), _FAILED),
        }.items():
            setattr(module.npu, name, call)
        torch.npu = module.npu
        torch.distributed.reinit_process_group = self._reinit

    def offer(self, module: ModuleType) -> None:
        """Become the device that the loop finds, for the points of a step and the copies of a repair."""
        module.device = lambda: self  # type: ignore[attr-defined]

    def all_reduce(self, tensor: Any) -> None:
        """Sum a tensor over all ranks, in its place. Raises RuntimeError with torch_npu's text of a stopped device."""
        if tensor.is_floating_point() and self.training.in_step:
            self.training.reach("allreduce.enter")
        tensor.copy_(_tensor(self._guarded(lambda: self.reduce(_array(tensor)))))

    def broadcast(self, tensor: Any, root: int) -> None:
        """Give all ranks the root's values, bit for bit: its bytes are summed with zeros."""
        import numpy

        raw = numpy.frombuffer(_array(tensor).tobytes(), numpy.uint8)
        total = self._guarded(lambda: self.reduce(raw if self.rank == root else numpy.zeros_like(raw)))
        tensor.copy_(_tensor(total.view(_array(tensor).dtype).reshape(tuple(tensor.shape))))

    def copy(self, tensors: list[Any], source: int, target: int) -> None:
        """Copy tensors from one rank to another; both ranks call this."""
        for tensor in tensors:
            values = _array(tensor)
            if self.rank == source:
                self._guarded(partial(self.send, target, values))
            else:
                tensor.detach().copy_(_tensor(self._guarded(partial(self.receive, source, values))))

    def update_begins(self) -> None:
        """Note that the optimizer begins to write."""
        self._memory.update_begins()
        self.training.reach("optimizer.update")

    def update_ends(self) -> None:
        """Note that the optimizer has written all of the step."""
        self._memory.update_ends()

    def note_trained(self) -> None:
        """Note that this rank has trained to its end; an outside host of the controller waits for that."""
        finished_ranks.note(finished_ranks.TRAINED, self.rank)

    def _suffer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Take an error that is about to be raised, with the text that torch_npu has for it."""
        effects, text = self._memory.suffer(order), str(order["text"])
        return {**effects, "raised_as": said} if (said := of_torch_npu(text)) != text else effects

    def _guarded(self, communicate: Callable[[], Any]) -> Any:
        try:
            return communicate()
        except RuntimeError as error:
            raise RuntimeError(of_torch_npu(str(error))) from error

    def _stop(self, number: int) -> None:
        del number
        self.stop()

    def _reinit(self, group: Any = None, rebuild_link: bool = True) -> None:
        """Make the groups of this process anew: with the same processes, or with new ones in lost ranks' places."""
        del group
        if rebuild_link:
            self.leave()
            self.rebuild()
        else:
            self.resume()


def _array(tensor: Any) -> Any:
    return tensor.detach().cpu().contiguous().numpy()


def _tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(array.copy())


def _set_tensor(parameter: Any, values: Any) -> None:
    parameter.detach().copy_(_tensor(values))
