"""The result of a format's parser, for ``chaos.observe.checkpoints.checkpoint``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.tensor import Tensor

Crc = Literal["verified", "absent"]

Plain = bool | int | float | str
"""A plain value beside the tensors."""


@dataclass(frozen=True)
class Parsed:
    """The content of the file, in its order.

    ``entries`` are tensors and plain values by their names. ``places`` holds the place in the file of the content of
    each tensor whose values lie there in order and little-endian. ``crc`` says whether a stored checksum was compared,
    ``partial`` whether the file says that it leaves out content of other ranks' files. ``numbers`` are whole numbers
    about the save, by the names that MindSpore gives them (``global_step``: updates of the optimizer; ``step_num``,
    ``epoch_num``, ``batch_num``, ``cur_rank``) or ``script_step`` (a step in the script's own counting, from 0 or from
    1). None says that the entries themselves bear these names, as MindSpore's do.
    """

    entries: Mapping[str, Tensor | Plain]
    places: Mapping[str, Span]
    crc: Crc
    partial: bool = False
    numbers: Mapping[str, int] | None = None
