"""Gradient reduction over the rehearsal's communicator, in place of MindSpore's ``DistributedGradReducer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chaos.agent.start import Agent
from chaos.rehearsal.in_rank.alterations import Alterations
from chaos.rehearsal.in_rank.spikes import Spikes

if TYPE_CHECKING:
    from chaos.rehearsal.device.device import Device


class Reduction:
    """The sum of one step's gradients over the ranks of a group, with its barrier, spikes and record."""

    def __init__(self, device: Device, agent: Agent) -> None:
        assert agent.barriers is not None and agent.digests is not None and agent.record is not None
        self._device = device
        self._barriers = agent.barriers
        self._digests = agent.digests
        self._spikes = Spikes(agent.barriers, agent.record)
        self._alterations: Alterations = device.alterations

    def reduce(self, flat: Any, *, share: float | None, group: str | None = None) -> Any:
        """Return the reduced gradients.

        ``share`` is the factor of the sum where the mean is taken, else None.
        """
        import numpy

        self._barriers.reach("allreduce.enter")
        flat = self._spikes.apply(
            flat, lambda own: self._device.expected(own, group), share=1.0 if share is None else share
        )
        flat = self._alterations.gradient(flat)
        total = self._device.all_reduce(flat, group)
        if share is not None:
            total = total * numpy.asarray(share, total.dtype)
        self._digests.gradients = total
        return total


def gradient_reducer(device: Device, agent: Agent) -> Any:
    """Return a class with the constructor and the call of MindSpore's reducer (2.7 to 2.10).

    All gradients of a step go in one message. They are summed in the order of ranks, so equal inputs give equal bits.
    """
    reduction = Reduction(device, agent)

    from mindspore.nn.cell import Cell

    class RehearsedGradReducer(Cell):  # type: ignore[misc]
        """Averages the gradients of all ranks, or of the ranks of a group, in PyNative mode."""

        def __init__(
            self,
            parameters: Any,
            mean: Any = None,
            degree: Any = None,
            fusion_type: int = 1,
            group: str | None = None,
        ) -> None:
            from mindspore.parallel._auto_parallel_context import auto_parallel_context

            super().__init__(auto_prefix=False)
            del parameters, fusion_type
            self._group = group
            self._mean = auto_parallel_context().get_gradients_mean() if mean is None else mean
            self._share = 1.0 / (degree or agent.place.ranks or 1)

        def construct(self, gradients: Any) -> Any:
            import numpy
            from mindspore import Tensor

            arrays = [gradient.asnumpy() for gradient in gradients]
            flat = numpy.concatenate([array.reshape(-1) for array in arrays])
            total = reduction.reduce(flat, share=self._share if self._mean else None, group=self._group)
            reduced, start = [], 0
            for array in arrays:
                part = total[start : start + array.size].reshape(array.shape)
                reduced.append(Tensor(part.astype(array.dtype)))
                start += array.size
            return tuple(reduced)

    return RehearsedGradReducer
