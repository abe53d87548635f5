"""Values that a fault silently changes inside a rank: a flipped bit, another batch, a loss that is no number.

The change is real, and made where a device or a loader would make it, so later values are computed from it. The rank
records the value before and after.
"""

from __future__ import annotations

import random
from typing import Any, Callable

from chaos.agent.barriers import Barriers
from chaos.agent.digests import array_digest, array_of
from chaos.agent.record import Record

_STATE = ("adam_", "moment", "accum")
"""Prefixes of the names of an optimizer's state."""
_WEIGHTS = (".weight", ".bias", ".gamma", ".beta")


class Alterations:
    """The changes ordered for this rank. ``write`` puts an array's values into a parameter."""

    def __init__(self, barriers: Barriers, record: Record, write: Callable[[Any, Any], None]) -> None:
        self._barriers = barriers
        self._record = record
        self._write = write
        self._batch: Any = None
        barriers.on_weight = self.weight

    def weight(self, order: dict[str, Any], phase: str) -> None:
        """Flip a bit of a weight; the agent calls it where it holds the rank."""
        parameters = [(name, value) for name, value in self._barriers.parameters if _floats(value)]
        target, seed = order.get("parameter"), int(order.get("seed", 0))
        named = [(name, value) for name, value in parameters if name == target]
        drawn = [(name, value) for name, value in parameters if name.endswith(_WEIGHTS) and not name.startswith(_STATE)]
        if not (named or (target is None and drawn)):
            known = ", ".join(name for name, _ in parameters)
            self._record.write("fault.refused", fault=order["fault"], reason=f"no parameter {target!r}: {known}")
            return
        name, parameter = named[0] if named else random.Random(f"{seed} parameter").choice(drawn)
        before = array_of(parameter)
        after, facts = _flipped(before, order)
        facts |= {"parameter": name, "digest_before": array_digest(before), "digest_after": array_digest(after)}
        self._write(parameter, after)
        self._note(order, phase, facts)

    def gradient(self, gradients: Any) -> Any:
        """Return this rank's flat gradients, before they are reduced."""
        return self._flip_in(gradients, "gradient", "allreduce.enter")

    def activation(self, values: Any) -> Any:
        """Return the output of a layer for the next one."""
        return self._flip_in(values, "activation", "forward")

    def batch(self, batch: Any) -> Any:
        """Return the batch to train: the batch of the step before where a fault says so."""
        before, self._batch = self._batch, batch
        for order in self._barriers.take_alterations_of("batch"):
            if before is not None:
                self._note(order, "forward", {"from_step": self._barriers.step - 1})
                batch = before
        return batch

    def computed(self, loss: Any, gradients: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return loss and gradients as they leave the step."""
        for order in self._barriers.take_alterations_of("loss"):
            value = float(order["value"])
            facts = {"before": float(loss).hex(), "after": value.hex()}
            loss = loss.dtype.type(value)
            gradients = {name: gradient.dtype.type(value) + 0 * gradient for name, gradient in gradients.items()}
            self._note(order, "forward", facts)
        return loss, gradients

    def _flip_in(self, values: Any, what: str, phase: str) -> Any:
        for order in self._barriers.take_alterations_of(what):
            values, facts = _flipped(values, order)
            self._note(order, phase, facts)
        return values

    def _note(self, order: dict[str, Any], phase: str, facts: dict[str, Any]) -> None:
        self._record.write(
            "fault.altered", fault=order["fault"], what=order["what"], step=self._barriers.step, phase=phase, **facts
        )


def _floats(parameter: Any) -> bool:
    values = array_of(parameter)
    return values is not None and values.dtype.kind == "f" and values.size > 0


def _flipped(values: Any, order: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the values with one bit flipped, and a record of the old value.

    Element and bit are drawn where none is given.
    """
    seed, width = int(order.get("seed", 0)), values.dtype.itemsize * 8
    element = int(order.get("element", random.Random(f"{seed} element").randrange(values.size))) % values.size
    bit = int(order.get("bit", random.Random(f"{seed} bit").randrange(width))) % width
    changed = values.copy().reshape(-1)
    before = float(changed[element])
    bits = changed.view(f"u{values.dtype.itemsize}")
    bits[element] ^= bits.dtype.type(1 << bit)
    after = float(changed[element])
    facts = {
        "dtype": str(values.dtype),
        "element": element,
        "bit": bit,
        "before": before.hex(),
        "after": after.hex(),
        "bits": f"{int(bits[element]):0{width // 4}x}",
    }
    return changed.reshape(values.shape), facts
