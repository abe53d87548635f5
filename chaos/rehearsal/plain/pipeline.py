"""One step's forward and backward pass, over the ranks that hold the network together.

Ranks of one stage add up the contributions of their slices. In a pipeline a rank of the first layer sends its columns
of the output, and its partner in the last stage sends their gradients back: what either has is nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy

from chaos.rehearsal.plain.mesh import Mesh
from chaos.rehearsal.plain.network import first_backward, first_forward, gradients, hidden_like, second_layer

if TYPE_CHECKING:
    from chaos.rehearsal.plain.device import PlainDevice


def computed(
    device: PlainDevice,
    mesh: Mesh,
    weights: dict[str, Any],
    batch: tuple[Any, Any],
    mask: Any,
    pass_on: Callable[[Any], Any],
) -> tuple[Any, dict[str, Any]]:
    """Return the loss, None on a stage before the last, and the gradients of this rank's layers.

    ``pass_on`` returns the second layer's input from the first layer's output; in a pipeline both partners call it.
    Raises RuntimeError with the text of a stopped device.
    """

    def add_up(part: Any) -> Any:
        return part if mesh.model_size == 1 else device.reduce(part, mesh.model_group)

    if mesh.stages == 1:
        return gradients(weights, batch, mask, add_up, pass_on)
    pictures, labels = batch
    if mesh.first_stage:
        kept = first_forward(weights, pictures, mask)
        device.send(mesh.behind, pass_on(kept.hidden))
        by_hidden = device.receive(mesh.behind, numpy.empty_like(kept.hidden))
        return None, first_backward(pictures, mask, kept, by_hidden)
    hidden = pass_on(device.receive(mesh.before, hidden_like(batch, mesh)))
    loss, by_layer2, by_hidden = second_layer(weights, hidden, labels, add_up)
    device.send(mesh.before, by_hidden)
    return loss, by_layer2
