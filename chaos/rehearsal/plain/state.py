"""Everything that training changes: weights, the moments of Adam, counters, the learning rate and the dropout's state.

Names are those of MindSpore's optimizers, by which the checks recognise each value.
"""

from __future__ import annotations

from typing import Any

import numpy

from chaos.rehearsal.plain.mesh import Mesh
from chaos.rehearsal.plain.network import first_weights

FLAG = "tft_g_one_flag"
"""1 while the state is that of a whole step; the number of ranks from the beginning of an update to its report."""

_BETA1, _BETA2, _EPSILON = numpy.float32(0.9), numpy.float32(0.999), numpy.float32(1e-8)
_FIRST_RATE, _DECAY = 0.002, numpy.float32(0.98)


class State:
    """A rank's parameters by name, changed in place."""

    def __init__(self, seed: int, mesh: Mesh, *, flagged: bool) -> None:
        weights = first_weights(seed, mesh)
        self._weights = tuple(weights)
        self.parameters: dict[str, Any] = {
            **weights,
            **{f"adam_m.{name}": numpy.zeros_like(weight) for name, weight in weights.items()},
            **{f"adam_v.{name}": numpy.zeros_like(weight) for name, weight in weights.items()},
            "beta1_power": numpy.ones(1, numpy.float32),
            "beta2_power": numpy.ones(1, numpy.float32),
            "learning_rate": numpy.full(1, _FIRST_RATE, numpy.float32),
            "global_step": numpy.zeros(1, numpy.int32),
            "random_state": numpy.array([seed, 0], numpy.uint64),
        }
        if flagged:
            self.parameters[FLAG] = numpy.ones(1, numpy.int32)

    @property
    def steps(self) -> int:
        """The number of finished updates."""
        return int(self.parameters["global_step"][0])

    @property
    def consistent(self) -> bool:
        """Whether every update that has begun is reported."""
        return bool(self.parameters[FLAG][0] == 1)

    def update(self, gradients: dict[str, Any]) -> None:
        """Do one step of Adam. The rate, the counters and the dropout go on with it."""
        parameters = self.parameters
        parameters["beta1_power"] *= _BETA1
        parameters["beta2_power"] *= _BETA2
        for name in self._weights:
            gradient, first, second = gradients[name], parameters[f"adam_m.{name}"], parameters[f"adam_v.{name}"]
            first += (1 - _BETA1) * (gradient - first)
            second += (1 - _BETA2) * (gradient * gradient - second)
            scaled = first / (1 - parameters["beta1_power"])
            parameters[name] -= (
                parameters["learning_rate"] * scaled / (numpy.sqrt(second / (1 - parameters["beta2_power"])) + _EPSILON)
            )
        parameters["learning_rate"] *= _DECAY
        parameters["global_step"] += 1
        parameters["random_state"][1] += numpy.uint64(1)

    def load(self, saved: dict[str, Any]) -> None:
        """Load the content of a checkpoint.

        Raises KeyError or ValueError, naming the value that is missing or has another shape.
        """
        for name, parameter in self.parameters.items():
            if saved[name].shape != parameter.shape:
                raise ValueError(f"{name} of the checkpoint has shape {saved[name].shape}, not {parameter.shape}")
            parameter[...] = saved[name]
