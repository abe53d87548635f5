"""The result of a format's parser, for ``chaos.observe.checkpoints.checkpoint``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.tensor import Tensor

Crc = Literal["verified", "absent"]

Plain = bool | int | float | str
"""A plain value beside the tensors."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Values of a tensor that lie in order in one of several files."""

    name: str
    dtype: str
    file: Path
    place: Span


@dataclass(frozen=True)
class Parsed:
    """The content of the file, in its order.

    ``entries`` are tensors and plain values by their names. ``places`` holds the place in the file of the content of
    each tensor whose values lie there in order and little-endian. ``crc`` says whether a stored checksum was compared,
    ``partial`` whether the file says that it leaves out content of other ranks' files. ``numbers`` are whole numbers
    about the save, by the names that MindSpore gives them (``global_step``: updates of the optimizer; ``step_num``,
    ``epoch_num``, ``batch_num``, ``cur_rank``) or ``script_step`` (a step in the script's own counting, from 0 or from
    1). None says that the entries themselves bear these names, as MindSpore's do. ``shards`` holds digests of the parts
    of a tensor, by its name and the rank that wrote the part, where ranks hold parts of it. ``pieces`` are all places
    of values, of a checkpoint of several files.
    """

    entries: Mapping[str, Tensor | Plain]
    places: Mapping[str, Span]
    crc: Crc
    partial: bool = False
    numbers: Mapping[str, int] | None = None
    shards: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()
