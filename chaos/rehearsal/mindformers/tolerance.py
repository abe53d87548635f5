"""The optimizer wrapper of MindSpore's fault tolerance in a training step that is compiled into one graph.

On Ascend its all-reduce and its reports to the SDK are operators of the graph. Here the graph calls back into Python
for them (``ops.Custom`` of type ``pyfunc``, MindSpore 2.10), as it does for the sum of the gradients.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaos.rehearsal.device.device import Device


def replace_wrapper(device: Device, module: ModuleType) -> None:
    """Give the wrapper operators that a graph can hold.

    ``module`` is MindSpore's fault tolerance callback, in which the device layer has replaced the operators of a step
    in Python already.
    """
    report, operators = module.TensorReport, module.ops
    module.TensorReport = lambda: _in_graph(report(), lambda inner, flag: inner("tft_report", flag))  # type: ignore[attr-defined]
    module.ops = _Operators(operators, device)  # type: ignore[attr-defined]


class _Operators:
    """MindSpore's ``ops`` with an AllReduce over the communicator, to be called in a graph."""

    def __init__(self, ops: Any, device: Device) -> None:
        self._ops = ops
        self._device = device

    def AllReduce(self) -> Any:
        return _in_graph(None, lambda inner, flag: self._device.all_reduce(flag))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)


def _in_graph(inner: Any, call: Any) -> Any:
    """Return a cell that calls back into Python with the flag, its last argument, and passes on the returned value."""
    from mindspore import nn, ops

    def called(flag: Any) -> Any:
        return call(inner, flag)

    class Called(nn.Cell):  # type: ignore[misc]
        """The content of ``construct`` is compiled."""

        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self._call = ops.Custom(called, _same, _same, func_type="pyfunc")
            # Kept in the graph, and in its order, also where the result is unused.
            self._call.add_prim_attr("side_effect_mem", True)

        def add_prim_attr(self, name: str, value: Any) -> Any:
            if inner is not None:
                inner.add_prim_attr(name, value)
            return self

        def construct(self, *arguments: Any) -> Any:
            return self._call(arguments[-1])

    return Called()


def _same(value: Any) -> Any:
    """Return a value with the shape and the type of ``value``."""
    return value
