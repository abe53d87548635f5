"""What a format's parser hands to ``chaos.observe.checkpoint``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.observe.tensor import Tensor

Crc = Literal["verified", "absent"]


@dataclass(frozen=True)
class Parsed:
    """Everything in the file, in its order. ``crc`` says whether a stored checksum was there and was compared,
    ``partial`` that the file says of itself that it leaves out what other ranks' files hold."""

    entries: dict[str, Tensor | str]
    crc: Crc
    partial: bool = False
