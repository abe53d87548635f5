"""Digests of losses, gradients and parameters, which the checks compare bit for bit.

Digests are apart from the hooks because their cost grows with the model. An interval can thin them out, and every event
has the cost of its digests.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from chaos.agent.digest import tensor_digest
from chaos.agent.record import Record
from chaos.agent.samples import Sampler


def array_digest(array: Any) -> str:
    """Return the digest of a NumPy array (duck-typed: the agent itself has no NumPy)."""
    return tensor_digest(str(array.dtype), array.shape, array.tobytes())


class Digests:
    """A writer of the events ``initial`` and ``digest``.

    ``gradients`` is a flat array of the reduced gradients of the step. The code that reduces them may set it before the
    update; the next digest takes it. With a ``sampler`` each event has samples of the parameters beside their digests.
    """

    def __init__(
        self, record: Record, interval: int, steps: Iterable[int] = (), *, sampler: Sampler | None = None
    ) -> None:
        self._record = record
        self._interval = interval
        self._steps = frozenset(steps)
        self._sampler = sampler
        self.gradients: Any = None
        self.costs_us: list[float] = []

    def is_due(self, step: int) -> bool:
        """Return whether this step has a digest."""
        return self._interval > 0 and (step % self._interval == 0 or step in self._steps)

    def write_initial(self, parameters: Iterable[tuple[str, Any]]) -> None:
        """Record the state before the first step."""
        if self._interval > 0:
            self._record.write("initial", **self._state(parameters))

    def write(self, step: int, *, outputs: Any, batch: Any, parameters: Iterable[tuple[str, Any]]) -> None:
        """Record the state after the update of ``step``, if this step has a digest."""
        if not self.is_due(step):
            self.gradients = None
            return
        began = time.perf_counter_ns()
        loss = _loss_of(outputs)
        fields: dict[str, Any] = {
            "step": step,
            "loss": None if loss is None else loss.hex(),
            "batch": _batch_digest(batch),
            "gradients": self._gradient_digest(),
            **self._state(parameters),
        }
        cost_us = (time.perf_counter_ns() - began) / 1000
        self.costs_us.append(cost_us)
        self._record.write("digest", cost_us=round(cost_us, 1), **fields)

    def _state(self, parameters: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Return the fields of an event about the parameters, each of which is copied to the host once."""
        if self._sampler is None:
            return {"parameters": _parameter_digests(parameters)}
        arrays = [(name, array_of(parameter)) for name, parameter in parameters]
        return {
            "parameters": {name: array_digest(array) for name, array in arrays},
            "samples": self._sampler.samples(arrays),
        }

    def _gradient_digest(self) -> dict[str, str] | None:
        gradients, self.gradients = self.gradients, None
        if gradients is None:
            return None
        norm = float((gradients.astype("float64") ** 2).sum() ** 0.5)
        return {"norm": norm.hex(), "digest": array_digest(gradients)}


def array_of(value: Any) -> Any:
    """Return the NumPy array of a tensor or of an array; None for any other value.

    Tensors of MindSpore have ``asnumpy``, those of PyTorch ``detach``, ``cpu`` and ``numpy``.
    """
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        return value
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return value.detach().cpu().numpy()
    return None


def _parameter_digests(parameters: Iterable[tuple[str, Any]]) -> dict[str, str]:
    return {name: _value_digest(parameter) for name, parameter in parameters}


def _value_digest(value: Any) -> str:
    """Return the digest of a parameter; it may be a plain number in the state of a job's own optimizer."""
    array = array_of(value)
    return array_digest(array) if array is not None else tensor_digest("number", (), repr(value).encode())


def _loss_of(outputs: Any) -> float | None:
    first = outputs[0] if isinstance(outputs, (tuple, list)) and outputs else outputs
    array = array_of(first)
    if array is None:
        return float(first) if isinstance(first, (int, float)) else None
    return float(array.reshape(-1)[0]) if array.size == 1 else float(array.mean())


def _batch_digest(batch: Any) -> str | None:
    parts = batch if isinstance(batch, (tuple, list)) else [batch]
    arrays = [array for array in map(array_of, parts) if array is not None]
    if not arrays:
        return None
    return tensor_digest("batch", (len(arrays),), "".join(map(array_digest, arrays)).encode())
