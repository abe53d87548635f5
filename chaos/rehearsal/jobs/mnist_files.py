"""Makes training data in the MNIST file format: real files, made from a seed, nothing downloaded.

The format is IDX: a big-endian magic number (2051 images, 2049 labels), the sizes, then bytes.
"""

from __future__ import annotations

import os
import struct

_SIDE = 28
_CLASSES = 10


def write_mnist(directory: str, *, images: int, seed: int) -> None:
    """Write ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte`` with ``images`` pictures of 28 by 28 bytes.

    Each class has its own pattern and each picture its own noise, so that a network can learn them and no two batches
    are alike. The same seed gives the same bytes.
    """
    import numpy  # the import takes a tenth of a second: this job kind is used for much else before

    generator = numpy.random.Generator(numpy.random.PCG64(seed))
    patterns = generator.integers(0, 256, (_CLASSES, _SIDE, _SIDE))
    labels = generator.integers(0, _CLASSES, images).astype(numpy.uint8)
    noise = generator.integers(-64, 65, (images, _SIDE, _SIDE))
    pictures = numpy.clip(patterns[labels] + noise, 0, 255).astype(numpy.uint8)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "train-images-idx3-ubyte"), "wb") as file:
        file.write(struct.pack(">IIII", 2051, images, _SIDE, _SIDE) + pictures.tobytes())
    with open(os.path.join(directory, "train-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">II", 2049, images) + labels.tobytes())
