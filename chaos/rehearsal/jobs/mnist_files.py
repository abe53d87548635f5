"""Makes training data in the MNIST file format: real files, made from a seed, nothing downloaded.

The format is the IDX one: a big-endian magic number (2051 images, 2049 labels), the sizes, then bytes.
"""

from __future__ import annotations

import os
import random
import struct

_SIDE = 28
_CLASSES = 10
_NOISE = 0x3F
"""The bits of a pixel in which two pictures of a class differ."""


def write_mnist(directory: str, *, images: int, seed: int) -> None:
    """Write ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte`` with ``images`` pictures of 28 by 28 bytes.

    Each class has its own pattern and each picture its own noise, so that a network can learn them and no two batches
    are alike. The same seed gives the same bytes.
    """
    source = random.Random(seed)
    size = _SIDE * _SIDE
    noise = int.from_bytes(bytes([_NOISE]) * size, "big")

    def pixels() -> int:
        return int.from_bytes(source.randbytes(size), "big")

    patterns = [pixels() for _ in range(_CLASSES)]
    labels = bytes(source.choices(range(_CLASSES), k=images))
    pictures = b"".join((patterns[label] ^ (pixels() & noise)).to_bytes(size, "big") for label in labels)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "train-images-idx3-ubyte"), "wb") as file:
        file.write(struct.pack(">IIII", 2051, images, _SIDE, _SIDE) + pictures)
    with open(os.path.join(directory, "train-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">II", 2049, images) + labels)
