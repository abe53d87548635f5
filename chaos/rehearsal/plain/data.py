"""The data: every batch follows from the seed, its epoch, its place in the epoch and the part of the data."""

from __future__ import annotations

from typing import Any

import numpy

FEATURES, CLASSES = 32, 10


class Batches:
    """Batches of ``size`` pictures for one part of the data, in an order that is drawn anew for every epoch."""

    def __init__(self, *, seed: int, size: int, per_epoch: int, part: int) -> None:
        self.per_epoch = per_epoch
        self._seed = seed
        self._size = size
        self._part = part
        self._teacher = _random(seed, 1).standard_normal((FEATURES, CLASSES), numpy.float32)
        self._order: tuple[int, Any] = (-1, None)

    def batch(self, position: int) -> tuple[Any, Any]:
        """Return pictures and labels at this position, which counts from 0 over the whole job."""
        epoch, place = divmod(position, self.per_epoch)
        if self._order[0] != epoch:
            self._order = (epoch, _random(self._seed, 2, epoch).permutation(self.per_epoch))
        draw = _random(self._seed, 3, int(self._order[1][place]), self._part)
        pictures = draw.standard_normal((self._size, FEATURES), numpy.float32)
        return pictures, (pictures @ self._teacher).argmax(axis=1).astype(numpy.int32)


def _random(*key: int) -> Any:
    return numpy.random.Generator(numpy.random.PCG64(key))
