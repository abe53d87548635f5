"""Tensors of floats, without NumPy."""

from __future__ import annotations

from array import array


class Array:
    """What the agent asks of a NumPy array of dtype float32."""

    dtype = "float32"

    def __init__(self, values: list[float]) -> None:
        self._values = array("f", values)
        self.shape = (len(values),)
        self.size = len(values)

    def reshape(self, size: int) -> array[float]:
        assert size == -1
        return self._values

    def mean(self) -> float:
        return sum(self._values) / self.size

    def tobytes(self) -> bytes:
        return self._values.tobytes()


class Tensor:
    """A tensor, or a parameter with a name."""

    def __init__(self, values: list[float], name: str = "") -> None:
        self.values = values
        self.name = name

    def asnumpy(self) -> Array:
        return Array(self.values)
