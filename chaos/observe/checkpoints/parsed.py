"""The result of a format's parser, for ``chaos.observe.checkpoints.checkpoint``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.tensor import Tensor

Crc = Literal["verified", "absent"]


@dataclass(frozen=True)
class Parsed:
    """The content of the file, in its order.

    ``places`` holds the place of the content of each tensor that is not cut into slices. ``crc`` says whether a stored
    checksum was compared, ``partial`` whether the file says that it leaves out content of other ranks' files.
    """

    entries: dict[str, Tensor | str]
    places: dict[str, Span]
    crc: Crc
    partial: bool = False
