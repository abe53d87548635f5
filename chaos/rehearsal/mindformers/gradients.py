"""The sum of gradients over the ranks, in a training step that MindSpore compiles into one graph.

The graph calls back into Python for it (``ops.Custom`` of type ``pyfunc``, MindSpore 2.10). So barriers, spikes and the
record of the reduced gradients are the same as in a step that runs in Python.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from chaos.agent.start import Agent
from chaos.rehearsal.device.gradients import Reduction

if TYPE_CHECKING:
    from chaos.rehearsal.device.device import Device


def replace_reduction(device: Device, agent: Agent, module: ModuleType) -> None:
    """Give MindFormers' training step this reducer, also with a single rank, where it would have none."""
    reduction = Reduction(device, agent)
    initialise = module.MFTrainOneStepCell.__init__

    def initialise_with_reducer(self: Any, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        share = 1.0 / agent.place.ranks if getattr(self, "mean", False) and agent.place.ranks else None
        self.grad_reducer = _reducer(reduction, self.weights, share)

    module.MFTrainOneStepCell.__init__ = initialise_with_reducer


def _reducer(reduction: Reduction, weights: Any, share: float | None) -> Any:
    from mindspore import nn, ops

    def reduce(flat: Any) -> Any:
        return reduction.reduce(flat, share=share)

    class GraphReducer(nn.Cell):  # type: ignore[misc]
        """All gradients in one flat tensor through the host and back. The content of ``construct`` is compiled."""

        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self._shapes = tuple(tuple(weight.shape) for weight in weights)
            self._sizes = tuple(int(weight.size) for weight in weights)
            self._reduce = ops.Custom(reduce, _same, _same, func_type="pyfunc")

        def construct(self, gradients: Any) -> Any:
            # The compiler knows neither annotations of variables nor *flat in a tuple.
            flat = ()
            for gradient in gradients:
                flat = flat + (gradient.reshape(-1).astype("float32"),)  # type: ignore[assignment]  # noqa: RUF005
            total = self._reduce(ops.concat(flat))
            reduced = ()
            start = 0
            for index in range(len(self._sizes)):
                part = total[start : start + self._sizes[index]].reshape(self._shapes[index])
                reduced = reduced + (part.astype(gradients[index].dtype),)  # type: ignore[assignment]  # noqa: RUF005
                start = start + self._sizes[index]
            return reduced

    return GraphReducer()


def _same(value: Any) -> Any:
    """Return a value with the shape and the type of ``value``."""
    return value
