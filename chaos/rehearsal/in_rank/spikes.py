"""Spikes in a rank's gradients: scales them for real, before they are reduced, as a fault orders.

So the reduced gradient, its global norm and the update that follows are those of an abnormal step on every rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable

from chaos.agent.barriers import Barriers
from chaos.agent.record import Record


class Spikes:
    """The spikes ordered for this rank. A spike with ``repeat`` comes again when its step is trained again."""

    def __init__(self, barriers: Barriers, record: Record) -> None:
        self._barriers = barriers
        self._record = record
        self._repeats: dict[int, list[dict[str, Any]]] = {}

    def apply(self, gradients: Any, others: Callable[[Any], Sequence[Any]], *, share: float) -> Any:
        """Return the rank's flat gradients, scaled if a spike is due in this step.

        ``others`` returns the other ranks' arrays for the coming reduction, for an array like this rank's. ``share`` is
        the factor of the sum over the ranks: 1, or one part for each rank where the mean is taken.
        """
        step = self._barriers.step
        orders = self._barriers.take_alterations() or self._repeats.pop(step, [])
        for order in orders:
            factor = (
                float(order["factor"])
                if "factor" in order
                else _factor_for(float(order["norm"]) / share, gradients, others(gradients))
            )
            gradients = gradients * gradients.dtype.type(factor)
            self._record.write(
                "fault.scaled",
                fault=order["fault"],
                step=step,
                phase="allreduce.enter",
                factor=factor,
                norm=order.get("norm"),
            )
            if order["repeat"] > 0:
                self._repeats.setdefault(step, []).append({**order, "repeat": order["repeat"] - 1})
        return gradients


def _factor_for(length: float, gradients: Any, arrays: Sequence[Any]) -> float:
    """Return the factor by which this rank's gradients must be scaled for the sum over all ranks to have this length.

    ``given`` are the gradients of the other ranks. Of two solutions it is the one that does not reverse this rank's
    own.
    """
    values = gradients.astype("float64")
    others = sum((array.astype("float64") for array in arrays), start=0.0 * values)
    # |others + f own|^2 = length^2
    square, product, rest = float(values @ values), float(values @ others), float(others @ others) - length**2
    root = product**2 - square * rest
    if square == 0 or root < 0:
        raise ValueError(f"no multiple of this rank's gradients gives the sum over all ranks the length {length:g}")
    return (math.sqrt(root) - product) / square
