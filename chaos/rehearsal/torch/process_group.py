"""The process group behind the backend ``hccl``: what DistributedDataParallel and a loop ask of one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaos.rehearsal.torch.device import TorchDevice


@functools.cache
def process_group_class() -> Any:
    """Return the class; PyTorch is imported here, not where this module is."""
    import torch
    from torch.futures import Future

    group: Any = torch.distributed.ProcessGroup
    ended: Any = torch._C._distributed_c10d._create_work_from_future  # work of Python's own has no future before 2.6

    def done(result: Any) -> Any:
        """Return the work of a collective that has ended."""
        future: Any = Future()
        future.set_result(result)
        return ended(future)

    class DeviceGroup(group):  # type: ignore[misc]
        """The group of all ranks. Each call returns when its collective has ended, or raises the device's error."""

        def __init__(self, rank: int, size: int, device: TorchDevice) -> None:
            super().__init__(rank, size)
            self._device = device
            self._name = ""

        @property
        def group_name(self) -> str:
            return self._name

        def _set_group_name(self, name: str) -> None:
            self._name = name

        def getBackendName(self) -> str:
            return "hccl"

        def allreduce(self, tensors: Any, options: Any = None) -> Any:
            import torch

            operation = getattr(options, "reduceOp", torch.distributed.ReduceOp.SUM)
            if operation != torch.distributed.ReduceOp.SUM:
                raise RuntimeError(f"the device layer of this rehearsal sums only, and {operation} was asked for")
            for tensor in tensors:
                self._device.all_reduce(tensor)
            return done(tensors)

        def broadcast(self, tensors: Any, options: Any = None) -> Any:
            for tensor in tensors:
                self._device.broadcast(tensor, getattr(options, "rootRank", 0))
            return done(tensors)

        def barrier(self, options: Any = None) -> Any:
            import torch

            del options
            self._device.all_reduce(torch.zeros(1, dtype=torch.int64))
            return done([])

    return DeviceGroup
