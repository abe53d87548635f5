"""Two layers with ReLU and dropout between them, by hand. The first is sliced by columns, the second by rows."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from chaos.rehearsal.plain.data import CLASSES, FEATURES
from chaos.rehearsal.plain.mesh import Mesh

HIDDEN = 512
"""So wide that the checkpoint of a quarter of it does not fit into the rest of a full disk (fault disk-full)."""
_KEPT = 0.9


def first_weights(seed: int, mesh: Mesh) -> dict[str, Any]:
    """Return this rank's slices of the initial weights. The bias of the second layer is whole everywhere."""
    draw = numpy.random.Generator(numpy.random.PCG64((seed, 0)))
    first = draw.standard_normal((FEATURES, HIDDEN), numpy.float32) * numpy.float32((100 / FEATURES / HIDDEN) ** 0.5)
    second = draw.standard_normal((HIDDEN, CLASSES), numpy.float32) * numpy.float32(0.25 * (1 / HIDDEN) ** 0.5)
    slices = _slice(mesh)
    return {
        "layer1.weight": first[:, slices].copy(),
        "layer1.bias": numpy.zeros(HIDDEN, numpy.float32)[slices].copy(),
        "layer2.weight": second[slices].copy(),
        "layer2.bias": numpy.zeros(CLASSES, numpy.float32),
    }


def dropout(random_state: Any, mesh: Mesh) -> Any:
    """Return this rank's slice of the mask, the same on all ranks.

    ``random_state`` is a seed and a counter of draws.
    """
    draw = numpy.random.Generator(numpy.random.PCG64([int(part) for part in random_state]))
    mask = (draw.random(HIDDEN, numpy.float32) < _KEPT).astype(numpy.float32) / numpy.float32(_KEPT)
    return mask[_slice(mesh)]


def _as_it_is(values: Any) -> Any:
    return values


def gradients(
    weights: dict[str, Any],
    batch: tuple[Any, Any],
    mask: Any,
    add_up: Callable[[Any], Any],
    pass_on: Callable[[Any], Any] = _as_it_is,
) -> tuple[Any, dict[str, Any]]:
    """Return loss and gradients of one batch.

    ``add_up`` sums the contributions of the layers' slices to the output; ``pass_on`` returns the second layer's input
    from the first layer's output.
    """
    pictures, labels = batch
    rows = numpy.arange(len(labels))
    before = pictures @ weights["layer1.weight"] + weights["layer1.bias"]
    hidden = pass_on(numpy.maximum(before, 0) * mask)
    output = add_up(hidden @ weights["layer2.weight"]) + weights["layer2.bias"]
    shifted = output - output.max(axis=1, keepdims=True)
    logarithms = shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))
    loss = -logarithms[rows, labels].mean(dtype=numpy.float32)
    by_output = numpy.exp(logarithms)
    by_output[rows, labels] -= 1
    by_output /= numpy.float32(len(labels))
    by_hidden = (by_output @ weights["layer2.weight"].T) * mask * (before > 0)
    return loss, {
        "layer1.weight": pictures.T @ by_hidden,
        "layer1.bias": by_hidden.sum(axis=0),
        "layer2.weight": hidden.T @ by_output,
        "layer2.bias": by_output.sum(axis=0),
    }


def _slice(mesh: Mesh) -> slice:
    width = HIDDEN // mesh.model_size
    return slice(mesh.model * width, (mesh.model + 1) * width)
