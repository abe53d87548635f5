"""Values that a fault changes in a rank of PyTorch: a weight, its gradients before they are reduced, its loss.

A weight is changed at the beginning of a step. All else is changed where the backward run of the step begins: DDP
reduces the gradients within it. A hook at the weight gets a gradient before DDP does. A factor goes into the backward
run as the gradient of the loss, so every gradient of the rank has it, whatever reduces them.

A job kind names this module among its extensions. In a rank with no armed fault it does nothing.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

from chaos.agent.barriers import Barriers
from chaos.agent.digests import array_digest, array_of
from chaos.agent.record import Record
from chaos.agent.start import Agent
from chaos.agent.torch.flipping import drawn_element, flip
from chaos.agent.torch.loop import REDUCED
from chaos.agent.torch.names import bare
from chaos.agent.torch.shards import is_cut, local_part

Order = dict[str, Any]


class Trained(Protocol):
    """The loop of this process."""

    model: Any

    def state(self) -> list[tuple[str, Any]]:
        """Return the weights, the buffers and the optimizers' slots, by name."""


def install(agent: Agent) -> None:
    """Let the loop of a rank with an armed fault make alterations."""
    barriers, record, loop = agent.barriers, agent.record, agent.torch_loop
    if barriers is not None and record is not None and loop is not None and barriers.armed_phases():
        loop.alterations = Alterations(loop, barriers, record)


class Alterations:
    """The changes ordered for this rank. A factor holds for all backward runs of its step."""

    def __init__(self, trained: Trained, barriers: Barriers, record: Record) -> None:
        self._trained = trained
        self._barriers = barriers
        self._record = record
        self._factor = 1.0
        self._hooked: list[tuple[Order, Any]] = []
        self._done: set[str] = set()
        barriers.on_weight = self.weight

    def weight(self, order: Order, phase: str) -> None:
        """Flip a bit of a weight, or of the optimizer's state where the order names it; of a DTensor in this part."""
        named = {name: value for name, value in self._trained.state() if _has_floats(value)}
        target = order.get("parameter")
        if target is None:
            trained = [bare(name) for name, value in self._trained.model.named_parameters() if value.requires_grad]
            drawable = [name for name in trained if name in named]
            target = random.Random(f"{int(order.get('seed', 0))} parameter").choice(drawable) if drawable else None
        if target not in named:
            self._refuse(order, f"no parameter {order.get('parameter')!r}: {', '.join(named)}")
            return
        tensor = named[target]
        values = local_part(tensor.detach())
        element, before = drawn_element(order, int(values.numel())), array_digest(array_of(tensor))
        facts = flip(values, element, order)
        digests = {"digest_before": before, "digest_after": array_digest(array_of(tensor))}
        self._note(order, phase, parameter=target, element=element, **facts, **digests)

    def backward(self, loss: Any, gradient: Any) -> Any:
        """Return the gradient that goes into a backward run, None for the usual 1."""
        for order in self._barriers.take_alterations_of("loss"):
            gradient = self._spoil(order, loss)
        for order in self._barriers.take_alterations():
            self._scale(order)
        for order in self._barriers.take_alterations_of("gradient"):
            self._hook(order)
        if self._factor == 1.0:
            return gradient
        return _filled(loss, self._factor) if gradient is None else gradient * self._factor

    def update_begins(self) -> None:
        """End the alterations of the step: its last gradient has been reduced."""
        self._factor = 1.0
        hooked, self._hooked = self._hooked, []
        for order, handle in hooked:
            handle.remove()
            if order["fault"] not in self._done:
                self._refuse(order, "no gradient of the weight came in this step")

    def _spoil(self, order: Order, loss: Any) -> Any:
        """Make the loss that the script holds no number; return the gradient by which all others become none."""
        value, before = float(order["value"]), float(loss.detach())
        loss.data.fill_(value)  # not a step of autograd: what it has saved stays valid
        self._note(order, "forward", before=before.hex(), after=value.hex())
        return _filled(loss, value)

    def _scale(self, order: Order) -> None:
        if "factor" not in order:
            self._refuse(order, "the gradients of the other ranks are not known here, so no norm can be reached")
            return
        self._factor *= float(order["factor"])
        self._record.write(
            "fault.scaled",
            fault=order["fault"],
            step=self._barriers.step,
            phase=REDUCED,
            factor=float(order["factor"]),
            norm=None,
        )

    def _hook(self, order: Order) -> None:
        """Flip the bit in the next gradient of its weight. The flat array has all trained weights, one by one."""
        trained = [
            (bare(name), weight)
            for name, weight in self._trained.model.named_parameters()
            if weight.requires_grad and weight.is_floating_point()
        ]
        if not trained or any(is_cut(weight) for _, weight in trained):
            self._refuse(
                order, "the weights are shards (DTensor): no hook gets their gradients before they are reduced"
            )
            return
        element = drawn_element(order, sum(int(weight.numel()) for _, weight in trained))
        name, weight, place = _weight_at(element, trained)

        def changed(gradient: Any) -> Any:
            if order["fault"] in self._done:
                return gradient
            self._done.add(order["fault"])
            copy = gradient.clone()
            self._note(order, REDUCED, parameter=name, element=element, **flip(copy, place, order))
            return copy

        self._hooked.append((order, weight.register_hook(changed)))

    def _refuse(self, order: Order, reason: str) -> None:
        self._record.write("fault.refused", fault=order["fault"], reason=reason)

    def _note(self, order: Order, phase: str, **facts: Any) -> None:
        self._record.write(
            "fault.altered", fault=order["fault"], what=order["what"], step=self._barriers.step, phase=phase, **facts
        )


def _weight_at(element: int, trained: list[tuple[str, Any]]) -> tuple[str, Any, int]:
    """Return the weight with an element of the flat array of all weights, and the place in the weight."""
    for name, weight in trained:
        if element < (size := int(weight.numel())):
            return name, weight, element
        element -= size
    raise IndexError(element)


def _has_floats(value: Any) -> bool:
    if not hasattr(value, "is_floating_point") or not value.is_floating_point():
        return False
    return int(local_part(value.detach()).numel()) > 0


def _filled(loss: Any, value: float) -> Any:
    return loss.detach().new_full(loss.shape, value)
