"""Two layers with ReLU and dropout between them, by hand. The first is sliced by columns, the second by rows.

In a pipeline each layer is on ranks of its own: a rank of the first layer sends its columns of the layer's output to
the rank that has the same rows of the second layer, and gets the gradients of these columns back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy

from chaos.rehearsal.plain.data import CLASSES, FEATURES
from chaos.rehearsal.plain.mesh import Mesh

HIDDEN = 512
"""So wide that the checkpoint of a quarter of it does not fit into the rest of a full disk (fault disk-full)."""
_KEPT = 0.9


def first_weights(seed: int, mesh: Mesh) -> dict[str, Any]:
    """Return this rank's slices of the initial weights of its layers. The bias of the second layer is whole.

    The draws are those of the whole network, wherever a layer lies.
    """
    draw = numpy.random.Generator(numpy.random.PCG64((seed, 0)))
    first = draw.standard_normal((FEATURES, HIDDEN), numpy.float32) * numpy.float32((100 / FEATURES / HIDDEN) ** 0.5)
    second = draw.standard_normal((HIDDEN, CLASSES), numpy.float32) * numpy.float32(0.25 * (1 / HIDDEN) ** 0.5)
    slices = _slice(mesh)
    weights = {}
    if mesh.first_stage:
        weights["layer1.weight"] = first[:, slices].copy()
        weights["layer1.bias"] = numpy.zeros(HIDDEN, numpy.float32)[slices].copy()
    if mesh.last_stage:
        weights["layer2.weight"] = second[slices].copy()
        weights["layer2.bias"] = numpy.zeros(CLASSES, numpy.float32)
    return weights


def dropout(random_state: Any, mesh: Mesh) -> Any:
    """Return this rank's slice of the mask, the same on all ranks.

    ``random_state`` is a seed and a counter of draws.
    """
    draw = numpy.random.Generator(numpy.random.PCG64([int(part) for part in random_state]))
    mask = (draw.random(HIDDEN, numpy.float32) < _KEPT).astype(numpy.float32) / numpy.float32(_KEPT)
    return mask[_slice(mesh)]


def _as_it_is(values: Any) -> Any:
    return values


@dataclass(frozen=True)
class Activations:
    """Outputs that the first layer keeps for its backward pass: before ReLU, and behind dropout."""

    before: Any
    hidden: Any


def first_forward(weights: dict[str, Any], pictures: Any, mask: Any) -> Activations:
    """Return the output of this rank's columns of the first layer."""
    before = pictures @ weights["layer1.weight"] + weights["layer1.bias"]
    return Activations(before, numpy.maximum(before, 0) * mask)


def first_backward(pictures: Any, mask: Any, kept: Activations, by_hidden: Any) -> dict[str, Any]:
    """Return the gradients of the first layer, from the gradient of the loss by its output."""
    by_before = by_hidden * mask * (kept.before > 0)
    return {"layer1.weight": pictures.T @ by_before, "layer1.bias": by_before.sum(axis=0)}


def second_layer(
    weights: dict[str, Any], hidden: Any, labels: Any, add_up: Callable[[Any], Any]
) -> tuple[Any, dict[str, Any], Any]:
    """Return loss, gradients of the second layer, and the gradient by its input.

    ``add_up`` sums the contributions of the layer's slices to the output.
    """
    rows = numpy.arange(len(labels))
    output = add_up(hidden @ weights["layer2.weight"]) + weights["layer2.bias"]
    shifted = output - output.max(axis=1, keepdims=True)
    logarithms = shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))
    loss = -logarithms[rows, labels].mean(dtype=numpy.float32)
    by_output = numpy.exp(logarithms)
    by_output[rows, labels] -= 1
    by_output /= numpy.float32(len(labels))
    gradients = {"layer2.weight": hidden.T @ by_output, "layer2.bias": by_output.sum(axis=0)}
    return loss, gradients, by_output @ weights["layer2.weight"].T


def gradients(
    weights: dict[str, Any],
    batch: tuple[Any, Any],
    mask: Any,
    add_up: Callable[[Any], Any],
    pass_on: Callable[[Any], Any] = _as_it_is,
) -> tuple[Any, dict[str, Any]]:
    """Return loss and gradients of one batch, of both layers.

    ``pass_on`` returns the second layer's input from the first layer's output.
    """
    pictures, labels = batch
    kept = first_forward(weights, pictures, mask)
    loss, second, by_hidden = second_layer(weights, pass_on(kept.hidden), labels, add_up)
    return loss, {**first_backward(pictures, mask, kept, by_hidden), **second}


def hidden_like(batch: tuple[Any, Any], mesh: Mesh) -> Any:
    """Return an array with the type and shape of this rank's columns of the first layer's output."""
    pictures, _ = batch
    return numpy.empty((len(pictures), HIDDEN // mesh.model_size), numpy.float32)


def _slice(mesh: Mesh) -> slice:
    width = HIDDEN // mesh.model_size
    return slice(mesh.model * width, (mesh.model + 1) * width)
