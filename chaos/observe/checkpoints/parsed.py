"""What a format's parser hands to ``chaos.observe.checkpoints.checkpoint``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.tensor import Tensor

Crc = Literal["verified", "absent"]


@dataclass(frozen=True)
class Parsed:
    """Everything in the file, in its order. ``places`` says where each tensor's content is that is not cut into slices.
    ``crc`` says whether a stored checksum was there and was compared, ``partial`` that the file says of itself that it
    leaves out what other ranks' files hold."""

    entries: dict[str, Tensor | str]
    places: dict[str, Span]
    crc: Crc
    partial: bool = False
